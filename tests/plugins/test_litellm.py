"""litellm as a provider: what it is asked, how its failures are sorted, and life without it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from wer.contracts import ModelSetup
from wer.errors import ModelError, ModelUnavailable, PromptTooLong, WerError
from wer.records import Message, Sampling
from wer_litellm import wer_models

HELLO = (Message(role="user", content="hello"),)
KINDS = (
    "ContextWindowExceededError",
    "Timeout",
    "APIConnectionError",
    "RateLimitError",
    "AuthenticationError",
    "BadRequestError",
    "InternalServerError",
)
STATUS = {
    "RateLimitError": 429,
    "AuthenticationError": 401,
    "BadRequestError": 400,
    "InternalServerError": 500,
}


@pytest.fixture
def litellm(monkeypatch):
    """A stand-in with litellm's names, so that the tests need neither it nor a provider."""
    module = ModuleType("litellm")
    module.exceptions = SimpleNamespace(
        **{kind: type(kind, (Exception,), {"status_code": STATUS.get(kind)}) for kind in KINDS}
    )
    module.requests = []
    module.failure = None

    async def acompletion(**request):
        module.requests.append(request)
        if module.failure is not None:
            raise module.failure
        wire = {"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 3}}
        return SimpleNamespace(model_dump=lambda: wire)

    def completion_cost(*, completion_response, model):
        if "unknown" in model:
            raise ValueError("not mapped")
        return 0.25

    module.acompletion = acompletion
    module.completion_cost = completion_cost
    module.get_supported_openai_params = lambda *, model: ["seed"] if "openai" in model else []
    monkeypatch.setitem(sys.modules, "litellm", module)
    return module


async def ask(rest, **sampling):
    return await wer_models()["litellm"](ModelSetup(name=rest)).complete(HELLO, (), Sampling(**sampling))


async def test_a_reply_is_priced_by_the_cost_map(litellm):
    reply = await ask("openai/m")

    assert (reply.text, reply.usage.prompt_tokens, reply.usage.usd) == ("hi", 3, 0.25)


async def test_a_model_that_the_cost_map_does_not_know_has_no_price(litellm):
    reply = await ask("openai/unknown")

    assert reply.usage.usd is None


async def test_litellm_is_told_not_to_try_again(litellm):
    await ask("openai/m", seed=5)

    request = litellm.requests[0]
    assert (request["num_retries"], request["max_retries"], request["seed"]) == (0, 0, 5)


async def test_a_provider_without_seeds_is_not_sent_one(litellm):
    await ask("anthropic/m")

    assert "seed" not in litellm.requests[0]


async def test_an_address_after_the_name_is_the_providers(litellm):
    model = wer_models()["litellm"](ModelSetup(name="vertex_ai/claude@2025@http://127.0.0.1:1/v1"))

    assert (model.name, model.url) == ("vertex_ai/claude@2025", "http://127.0.0.1:1/v1")


def test_anthropic_is_short_for_litellms(litellm):
    assert wer_models()["anthropic"](ModelSetup(name="m")).identity["name"] == "anthropic/m"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Timeout", ModelUnavailable),
        ("APIConnectionError", ModelUnavailable),
        ("RateLimitError", ModelUnavailable),
        ("InternalServerError", ModelUnavailable),
        ("AuthenticationError", ModelError),
        ("BadRequestError", ModelError),
        ("ContextWindowExceededError", PromptTooLong),
    ],
)
async def test_failures_are_sorted_by_whether_another_try_can_help(litellm, kind, expected):
    litellm.failure = getattr(litellm.exceptions, kind)("no")

    with pytest.raises(WerError) as caught:
        await ask("openai/m")

    assert type(caught.value) is expected


def test_without_litellm_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)

    with pytest.raises(WerError, match=r"pip install 'wer-skills\[litellm\]'"):
        wer_models()["litellm"](ModelSetup(name="anthropic/m"))


def test_a_missing_key_is_noticed_without_asking(litellm):
    missing = {"anthropic/c": ["ANTHROPIC_API_KEY"], "azure/c": ["AZURE_API_KEY", "AZURE_API_BASE"]}
    litellm.validate_environment = lambda name: {"missing_keys": missing.get(name, [])}
    offered = wer_models()

    with pytest.raises(ModelError, match=r"no API key for litellm/anthropic/c\. Set ANTHROPIC_API_KEY"):
        offered["anthropic"].check("c")
    offered["litellm"].check("azure/c")  # which may have a token of the cloud in the place of a key
    offered["litellm"].check("anthropic/c@http://127.0.0.1:9/")
    offered["litellm"].check("groq/c")
