"""Entry module of the API models: a fast client for OpenAI-compatible servers, and litellm for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from wer.contracts import Model, ModelSetup, Provider
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:
    """Offer ``openai/NAME[@URL]``, ``litellm/PROVIDER/NAME`` and ``anthropic/NAME``."""
    return {
        "openai": Provider(_openai, cost="unpriced", check=_check_openai),
        "litellm": Provider(_litellm, check=_check_litellm),
        "anthropic": Provider(_anthropic, check=_check_anthropic),
    }


def _openai(setup: ModelSetup) -> Model:
    from wer_litellm.openai import named

    return named(setup.name)


def _check_openai(name: str) -> None:
    from wer_litellm.openai import named

    named(name)


def _litellm(setup: ModelSetup) -> Model:
    from wer_litellm.litellm import LitellmModel

    return LitellmModel.named(setup.name)


def _anthropic(setup: ModelSetup) -> Model:
    return _litellm(evolve(setup, name=f"anthropic/{setup.name}"))


def _check_litellm(name: str) -> None:
    from wer_litellm.litellm import LitellmModel

    LitellmModel.named(name).check()


def _check_anthropic(name: str) -> None:
    _check_litellm(f"anthropic/{name}")
