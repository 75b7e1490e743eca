"""Entry module of the API models: a fast client for OpenAI-compatible servers, and litellm for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Model
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[str], Model]]:
    return {"openai": _openai, "litellm": _litellm, "anthropic": _anthropic}


def _openai(rest: str) -> Model:
    from wer_litellm.openai import OpenAIModel

    return OpenAIModel.named(rest)


def _litellm(rest: str) -> Model:
    from wer_litellm.litellm import LitellmModel

    return LitellmModel.named(rest)


def _anthropic(rest: str) -> Model:
    return _litellm(f"anthropic/{rest}")
