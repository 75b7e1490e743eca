"""Entry module of the local models: GGUF files run in this process by llama.cpp, no server and no key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Model
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[str], Model]]:
    return {"local": _local}


def _local(rest: str) -> Model:
    from wer_llamacpp.model import LocalModel
    from wer_llamacpp.naming import LocalName

    return LocalModel.of(LocalName.parse(rest))
