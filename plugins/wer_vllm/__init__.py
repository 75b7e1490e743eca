"""Entry module of vLLM: servers that WER starts for the length of a run, or that run already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Model, ModelSetup, Provider
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:
    """Offer ``vllm/MODEL[?options]``, which is served here, and ``vllm/MODEL@URL``, which is served already."""
    return {"vllm": Provider(_vllm, cost="free", concurrency=64, serves=_is_ours, program=_program)}


def _vllm(setup: ModelSetup) -> Model:
    from wer_vllm.model import open_model

    return open_model(setup)


def _program() -> str:
    """Say which vLLM would be started."""
    from wer_vllm.program import Program

    program = Program.find()
    return f"{program.version or 'of unknown version'}, {program.command[0]}"


def _is_ours(name: str) -> bool:
    """Whether a model of that name is served by a server of our own."""
    return "@http" not in name
