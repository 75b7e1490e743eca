"""Entry module of the state-match verifier: the end state must be the expected one."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Verifier


@hookimpl
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Offer ``--verifier state_match``."""
    return {"state_match": _state_match}


def _state_match() -> Verifier:
    from wer_state_match.verifier import StateMatch

    return StateMatch()
