"""The fast client against a real, hostile server on the loopback interface."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from attrs import evolve
from support.mock_openai import (
    MockOpenAI,
    answers,
    breaks_off,
    calls,
    fails,
    hangs,
    resets,
    says,
    sends_bytes,
    sends_json,
)

from wer.errors import ModelError, ModelUnavailable, PromptTooLong
from wer.records import Message, Sampling, ToolCall, ToolSpec
from wer.serving.answers import seconds
from wer.serving.client import Dialect, ServedModel

LS = ToolSpec(name="ls", description="List.", parameters={"type": "object", "properties": {}})
HELLO = (Message(role="user", content="hello"),)


def served(url, **dialect):
    return ServedModel(name="tiny", url=url, dialect=Dialect(provider="openai", **dialect))


def opened(mock):
    return served(mock.url)


async def ask(*script, tools=(), messages=HELLO, **sampling):
    """One answer of a mock with this script, and the mock."""
    async with MockOpenAI(*script) as mock:
        model = opened(mock)
        try:
            return await model.complete(messages, tools, Sampling(**sampling)), mock
        finally:
            await model.close()


async def test_a_reply_carries_text_finish_and_usage():
    script = says("hi", finish="length", prompt_tokens_details={"cached_tokens": 8})

    reply, _ = await ask(script)

    assert (reply.text, reply.finish) == ("hi", "length")
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (1, 10, 5, 8)
    assert usage.usd is None


async def test_native_calls_are_decoded_and_undecodable_ones_kept_raw():
    good, _ = await ask(calls("ls", {"a": True}))
    bad, _ = await ask(calls("ls", '{"a": '))
    not_an_object, _ = await ask(calls("ls", "[1]"))
    not_json, _ = await ask(calls("ls", '{"a": NaN}'))

    assert good.calls == (ToolCall(name="ls", arguments={"a": True}, id="call_1"),)
    assert bad.calls == () and bad.malformed == ('ls {"a": ',)
    assert not_an_object.malformed == ("ls [1]",)
    assert not_json.malformed == ('ls {"a": NaN}',)


async def test_the_request_says_what_was_asked_and_no_more():
    schema = {"type": "object"}

    _, mock = await ask(
        says("{}"), tools=(LS,), temperature=0.5, top_k=9, seed=3, max_tokens=7, json_schema=schema
    )

    body = mock.requests[0]
    assert {key: body[key] for key in ("model", "temperature", "top_k", "seed", "max_tokens")} == {
        "model": "tiny",
        "temperature": 0.5,
        "top_k": 9,
        "seed": 3,
        "max_tokens": 7,
    }
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["tools"][0]["function"]["name"] == "ls"
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert "top_p" not in body
    assert "Authorization" not in mock.headers[0]


async def test_a_history_of_calls_and_results_goes_out_as_it_came_in():
    call = ToolCall(name="ls", arguments={"folder": "Möbel"}, id="x1")
    history = (
        *HELLO,
        Message(role="assistant", content="", calls=(call,)),
        Message(role="tool", content="[]", call_id="x1"),
    )

    _, mock = await ask(says("done"), messages=history)

    _, assistant, tool = mock.requests[0]["messages"]
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] == "x1"
    assert assistant["tool_calls"][0]["function"]["arguments"] == '{"folder": "Möbel"}'


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
async def test_statuses_that_pass_are_worth_another_try(status):
    with pytest.raises(ModelUnavailable):
        await ask(fails(status))


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
async def test_statuses_that_stay_are_errors_for_good(status):
    with pytest.raises(ModelError) as caught:
        await ask(fails(status))

    assert not isinstance(caught.value, ModelUnavailable)


async def test_an_empty_account_is_not_worth_another_try():
    with pytest.raises(ModelError, match="no credit") as caught:
        await ask(fails(429, code="insufficient_quota"))

    assert not isinstance(caught.value, ModelUnavailable)


async def test_a_prompt_beyond_the_servers_context_is_too_long():
    with pytest.raises(PromptTooLong, match="Shorten the skill"):
        await ask(fails(400, code="context_length_exceeded"))


async def test_retry_after_reaches_the_caller():
    with pytest.raises(ModelUnavailable) as caught:
        await ask(fails(429, retry_after="2.5"))

    assert caught.value.retry_after_s == 2.5


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        (None, None),
        ("soon", None),
        ("nan", None),
        ("-3", 0.0),
        ("1e9", 600.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00", None),
    ],
)
def test_retry_after_is_read_with_care(header, wait_s):
    assert seconds(header) == wait_s


@pytest.mark.parametrize(
    "broken",
    [
        resets(),
        breaks_off(),
        sends_bytes(b"<html>busy</html>", content_type="text/html"),
        sends_bytes(b""),
        sends_bytes(b"[" * 100_000),
        sends_json([]),
        sends_json({"choices": []}),
        sends_json({"choices": ["x"]}),
        sends_json({"choices": [{"message": None}]}),
        sends_json({"error": {"message": "upstream died"}}),
    ],
    ids=[
        "reset",
        "truncated",
        "html",
        "empty",
        "deep",
        "list",
        "no choice",
        "text choice",
        "no message",
        "error",
    ],
)
async def test_an_answer_that_is_none_is_worth_another_try(broken):
    with pytest.raises(ModelUnavailable):
        await ask(broken)


async def test_a_wrong_content_type_with_right_json_is_a_reply():
    body = b'{"choices": [{"message": {"content": "hi"}}]}'

    reply, _ = await ask(sends_bytes(body, content_type="text/plain"))

    assert reply.text == "hi"


async def test_a_reply_of_not_one_token_is_a_fault_and_silence_of_the_models_own_is_a_reply():
    silent, _ = await ask(answers({"content": ""}, completion_tokens=1))

    assert silent.text == ""
    with pytest.raises(ModelUnavailable, match="empty reply: no text, no call, not one token"):
        await ask(answers({"content": None}, completion_tokens=0))


@pytest.mark.parametrize(
    "raw",
    ["[" * 101 + "]" * 101, '{"a":' * 500 + "1" + "}" * 500, '{"a": "' + "x" * (1 << 20) + '"}'],
    ids=["lists", "objects", "a megabyte"],
)
async def test_arguments_that_no_store_could_carry_are_malformed(raw):
    reply, _ = await ask(calls("ls", raw))

    assert reply.calls == () and reply.malformed == (f"ls {raw}",)


async def test_invalid_unicode_is_replaced_and_read():
    bytes_reply, _ = await ask(sends_bytes(b'{"choices": [{"message": {"content": "a\xff"}}]}'))
    surrogate_reply, _ = await ask(sends_bytes(rb'{"choices": [{"message": {"content": "a\ud800"}}]}'))

    assert bytes_reply.text == surrogate_reply.text == "a\ufffd"


async def test_content_in_parts_is_joined_and_a_refusal_is_text():
    parts, _ = await ask(answers({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}))
    refusal, _ = await ask(answers({"content": None, "refusal": "I won't"}))

    assert (parts.text, refusal.text) == ("ab", "I won't")


async def test_a_reply_of_more_than_the_cap_is_refused_for_good():
    with pytest.raises(ModelError, match="16 MiB") as caught:
        await ask(sends_bytes(b" " * ((16 << 20) + 1)))

    assert not isinstance(caught.value, ModelUnavailable)


async def test_a_server_that_hangs_runs_into_the_time_limit():
    async with MockOpenAI(hangs()) as mock:
        model = evolve(opened(mock), timeout=aiohttp.ClientTimeout(total=0.05))
        with pytest.raises(ModelUnavailable, match=r"no answer in 0\.05 s"):
            await model.complete(HELLO, (), Sampling())
        await model.close()


async def test_a_server_that_is_not_there_is_worth_another_try():
    model = served("http://127.0.0.1:9/v1")

    with pytest.raises(ModelUnavailable):
        await model.complete(HELLO, (), Sampling())

    await model.close()


async def test_one_failure_is_one_request():
    async with MockOpenAI() as mock:
        model = opened(mock)
        with pytest.raises(ModelUnavailable):
            await model.complete(HELLO, (), Sampling())
        await model.close()

        assert len(mock.requests) == 1


async def test_many_calls_run_at_once():
    everyone = asyncio.Barrier(150)

    async def answer(body):
        async with asyncio.timeout(60):
            await everyone.wait()
        return says("hi")(body)

    async with MockOpenAI(default=answer) as mock:
        model = opened(mock)

        await asyncio.gather(*(model.complete(HELLO, (), Sampling()) for _ in range(150)))

        await model.close()
        assert mock.most_at_once == 150


async def test_a_model_can_be_closed_twice():
    async with MockOpenAI(says("hi")) as mock:
        model = opened(mock)
        await model.complete(HELLO, (), Sampling())

        await model.close()
        await model.close()


async def test_a_servers_dialect_names_the_limit_and_adds_what_it_must_be_told():
    async with MockOpenAI(says("hi")) as mock:
        model = served(mock.url, limit="most", top_k=False, always={"top_p": 1.0, "min_p": 0.0}, usd=0.0)
        reply = await model.complete(HELLO, (), Sampling(top_k=3, top_p=0.5, max_tokens=7))
        await model.close()

    body = mock.requests[0]
    assert (body["most"], body["top_p"], body["min_p"], reply.usage.usd) == (7, 0.5, 0.0, 0.0)
    assert not {"max_tokens", "top_k"} & body.keys()
    assert model.identity["ignores"] == ["top_k"]


async def test_the_environments_proxy_is_used_with_its_password(monkeypatch):
    async with MockOpenAI(says("hi")) as proxy:
        address = proxy.url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("http_proxy", f"http://user:word@{address}")
        monkeypatch.setenv("no_proxy", "")
        model = served("http://models.invalid/v1")

        reply = await model.complete(HELLO, (), Sampling())
        await model.close()

    assert reply.text == "hi"
    assert proxy.headers[0]["Host"] == "models.invalid"
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic dXNlcjp3b3Jk"


async def test_a_server_that_is_to_have_no_proxy_is_asked_directly(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    reply, _ = await ask(says("hi"))

    assert reply.text == "hi"
