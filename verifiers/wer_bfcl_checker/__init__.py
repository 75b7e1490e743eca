"""Entry module of BFCL's two verdicts: the official one, and the final state alone."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Verifier


@hookimpl
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Offer BFCL's default ``bfcl_checker``, and ``--verifier bfcl_final_state``."""
    return {"bfcl_checker": _official, "bfcl_final_state": _final_state}


def _official() -> Verifier:
    from wer_bfcl_checker.official import BfclChecker

    return BfclChecker()


def _final_state() -> Verifier:
    from wer_bfcl_checker.final_state import BfclFinalState

    return BfclFinalState()
