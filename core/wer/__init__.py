"""WER: Write, Execute, Refine. Better written skills for tool-using agents, from verified execution."""

from typing import TYPE_CHECKING, Any

from wer.hookspecs import hookimpl

if TYPE_CHECKING:
    from wer.domain import Domain, State
    from wer.records import Verdict

__all__ = ["Domain", "State", "Verdict", "hookimpl"]

_PLACES = {"Domain": "wer.domain", "State": "wer.domain", "Verdict": "wer.records"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: ``import wer`` alone stays cheap."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'wer' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
