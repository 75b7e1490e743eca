"""``python -m wer``."""

from wer.cli import main

main()
