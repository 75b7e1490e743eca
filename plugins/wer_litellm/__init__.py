"""Entry module of the API models: a fast client for OpenAI-compatible servers, and litellm for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from wer.contracts import Model, ModelSetup, Provider
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:
    """Offer ``openai/NAME[@URL]``, ``litellm/PROVIDER/NAME`` and ``anthropic/NAME``."""
    return {"openai": Provider(_openai, cost="unpriced"), "litellm": _litellm, "anthropic": _anthropic}


def _openai(setup: ModelSetup) -> Model:
    from wer_litellm.openai import named

    return named(setup.name)


def _litellm(setup: ModelSetup) -> Model:
    from wer_litellm.litellm import LitellmModel

    return LitellmModel.named(setup.name)


def _anthropic(setup: ModelSetup) -> Model:
    return _litellm(evolve(setup, name=f"anthropic/{setup.name}"))
