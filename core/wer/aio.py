"""The Python interface as coroutines, for programs with an event loop of their own: ``await wer.aio.refine(...)``."""

from wer.api.calls import compare_later as compare
from wer.api.calls import evaluate_later as evaluate
from wer.api.calls import refine_later as refine
from wer.api.calls import train_later as train

__all__ = ["compare", "evaluate", "refine", "train"]
