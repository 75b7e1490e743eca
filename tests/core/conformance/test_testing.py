"""``wer.testing`` in the tests of a third party."""

import os
import subprocess
import sys
from pathlib import Path

_TESTS = """\
from support import till
from wer.testing import conformance

test_good = conformance("environment", "till", extra=[till.plugin()], sandbox="process", tasks=1)
test_bad = conformance(
    "verifier", "till_total", environment="till", sandbox="process", tasks=1,
    extra=[till.plugin(verifier=till.Everything)],
)
test_absent = conformance("model", "openai")
"""


def test_each_sentence_is_a_test_that_fails_with_fault_and_remedy(tmp_path):
    (tmp_path / "test_till.py").write_text(_TESTS)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-rs", "test_till.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    out = done.stdout
    assert "test_good[fresh episodes of one task are equal] PASSED" in out, out
    assert "test_bad[doing nothing fails] FAILED" in out
    assert "verifier till_total on till: the verifier accepts doing nothing on all 1 tasks" in out
    assert "Compare what the agent left behind with what the task wants" in out
    assert "give --model openai/NAME" in out
    assert "Traceback" not in out
