"""What every test may lean on: property tests that repeat themselves and never race a clock."""

from hypothesis import settings

settings.register_profile("wer", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("wer")
