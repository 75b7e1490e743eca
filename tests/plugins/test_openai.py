"""What ``openai/NAME[@URL]`` means: whose key goes where, and what OpenAI itself does not know."""

from __future__ import annotations

import pytest
from support.mock_openai import MockOpenAI, fails, says

from wer.contracts import ModelSetup
from wer.errors import ConfigError, ModelError
from wer.records import Message, Sampling
from wer_litellm import wer_models

HELLO = (Message(role="user", content="hello"),)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "WER_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def opened(mock):
    return wer_models()["openai"](ModelSetup(name=f"tiny@{mock.url}"))


async def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("WER_API_KEY", "sk-secret")

    async with MockOpenAI(fails(401, message="wrong key sk-secret")) as mock:
        model = opened(mock)
        with pytest.raises(ModelError, match="Check the API key") as caught:
            await model.complete(HELLO, (), Sampling())
        await model.close()

    assert mock.headers[0]["Authorization"] == "Bearer sk-secret"
    shown = f"{caught.value} {model} {model!r} {model.identity}"
    assert "sk-secret" not in shown


async def test_openais_own_key_is_not_sent_to_another_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async with MockOpenAI(says("hi")) as mock:
        model = opened(mock)
        await model.complete(HELLO, (), Sampling())
        await model.close()

    assert "Authorization" not in mock.headers[0]


def test_openai_itself_needs_a_key():
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        wer_models()["openai"](ModelSetup(name="gpt-4o-mini"))


def test_openai_itself_has_no_top_k_and_says_so(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    model = wer_models()["openai"](ModelSetup(name="gpt-4o-mini"))

    assert model.identity["ignores"] == ["top_k"]


@pytest.mark.parametrize("rest", ["", "@http://127.0.0.1/v1", "m@ftp://x", "m@"])
def test_a_name_that_is_none_is_a_configuration_error(rest):
    with pytest.raises(ConfigError):
        wer_models()["openai"](ModelSetup(name=rest))
