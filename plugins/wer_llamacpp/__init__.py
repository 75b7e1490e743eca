"""Entry module of the local models: GGUF files run in this process by llama.cpp, no server and no key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from wer.contracts import Model, ModelSetup, Provider
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:
    """Offer ``local/NAME``, of the catalogue or a file."""
    calls = 2 * (os.cpu_count() or 1)  # one on each core, and one that follows it without a pause
    return {"local": Provider(_local, cost="free", concurrency=calls)}


def _local(setup: ModelSetup) -> Model:
    from wer_llamacpp.model import LocalModel
    from wer_llamacpp.naming import LocalName

    return LocalModel.of(LocalName.parse(setup.name))
