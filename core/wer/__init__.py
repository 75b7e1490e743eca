"""WER: Write, Execute, Refine. Better written skills for tool-using agents, from verified execution."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wer import aio as aio
    from wer.api import Budget, Run, compare, evaluate, refine, train
    from wer.domain import Domain, State
    from wer.hookspecs import hookimpl
    from wer.records import Outcome, Usage, Verdict
    from wer.toolbox import Tools

__all__ = [
    "Budget",
    "Domain",
    "Outcome",
    "Run",
    "State",
    "Tools",
    "Usage",
    "Verdict",
    "aio",
    "compare",
    "evaluate",
    "hookimpl",
    "refine",
    "train",
]

_PLACES = {
    **dict.fromkeys(("Budget", "Run", "compare", "evaluate", "refine", "train"), "wer.api"),
    "Domain": "wer.domain",
    "State": "wer.domain",
    "hookimpl": "wer.hookspecs",
    "Outcome": "wer.records",
    "Usage": "wer.records",
    "Verdict": "wer.records",
    "Tools": "wer.toolbox",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: ``import wer`` alone stays cheap."""
    from importlib import import_module

    if name == "aio":
        return import_module("wer.aio")
    if name not in _PLACES:
        raise AttributeError(f"module 'wer' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """What a notebook offers to complete."""
    return [*globals(), *__all__]
