"""What `wer plugin check helpdesk` looks at, a test for each sentence of it; no model is asked."""

from wer.testing import conformance

test_the_environment = conformance("environment", "helpdesk", sandbox="process")
test_the_verdict = conformance("verifier", "helpdesk", environment="helpdesk", sandbox="process")
