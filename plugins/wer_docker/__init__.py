"""Offers the sandbox ``docker``: one warm container a worker, and no network in it."""

from collections.abc import Callable, Mapping

from wer.contracts import Sandbox
from wer.hookspecs import hookimpl


@hookimpl
def wer_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:
    """Offer ``docker``."""
    return {"docker": _docker}


def _docker() -> Sandbox:
    from wer_docker.sandbox import DockerSandbox

    return DockerSandbox()
