"""Offers the sandbox ``process``: confined processes of this machine, no daemon needed."""

from collections.abc import Callable, Mapping

from wer.contracts import Sandbox
from wer.hookspecs import hookimpl


@hookimpl
def wer_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:
    """Offer ``process``."""
    return {"process": _process}


def _process() -> Sandbox:
    from wer_process.sandbox import ProcessSandbox

    return ProcessSandbox()
