"""Everything that the command line does, in the same words, for notebooks, scripts and tests."""

from wer.api.calls import compare, evaluate, refine, train
from wer.api.result import Run
from wer.api.words import Budget

__all__ = ["Budget", "Run", "compare", "evaluate", "refine", "train"]
