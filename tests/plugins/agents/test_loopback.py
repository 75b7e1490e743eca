"""The door of a rollout: MCP as clients speak it, and the recording proxy in front of a model server."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from attrs import frozen
from support.mock_openai import MockOpenAI, breaks_off, calls, fails, hangs, resets, says, sends_bytes

from wer.conformance.scripts import TASK, ScriptedSession
from wer.contracts import AgentSetup
from wer.errors import ModelUnavailable
from wer.records import NO_SKILL, Observation, Skill, ToolCall
from wer_agents.loopback import Door, opened
from wer_agents.recording import Record, shows
from wer_agents.upstream import Upstream
from wer_agents.visit import Visit

SKILL = Skill(name="greet", description="Greet.", body='## Workflow\n1. Greet whom the "user" names.\n')


@frozen
class Guest:
    """A client of an open door."""

    door: Door
    visit: Visit
    http: aiohttp.ClientSession

    async def mcp(self, message):
        async with self.http.post(self.door.mcp_url, json=message) as answer:
            return answer.status, await answer.json() if answer.status != 202 else None

    async def ask(self, method, **params):
        _, answer = await self.mcp({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return answer

    async def complete(self, *messages, **more):
        asked = {"model": "m", "messages": list(messages), **more}
        async with self.http.post(f"{self.door.model_url}/chat/completions", json=asked) as answer:
            return answer.status, await answer.read()


@asynccontextmanager
async def guest(upstream="", *, own=False, skill=SKILL, token=None, turns=()) -> AsyncIterator[Guest]:
    record = Record(skill=skill, own=own, turns=turns)
    visit = Visit(task=TASK, session=ScriptedSession(), record=record)
    behind = Upstream(url=upstream, key="sk-upstream") if upstream else None
    headers = {"Authorization": f"Bearer {visit.token if token is None else token}"}
    async with (
        opened(visit, behind, AgentSetup(name="x")) as door,
        aiohttp.ClientSession(headers=headers) as http,
    ):
        yield Guest(door, visit, http)


def user(text):
    return {"role": "user", "content": text}


async def test_a_client_shakes_hands_and_finds_the_tools():
    async with guest() as client:
        hello = await client.ask("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={})
        begun = await client.mcp({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = await client.ask("tools/list")
        pinged = await client.ask("ping")

    assert hello["result"]["protocolVersion"] == "2025-03-26"
    assert hello["result"]["instructions"] == TASK.context
    assert begun == (202, None)
    (tool,) = listed["result"]["tools"]
    assert (tool["name"], tool["inputSchema"]["required"]) == ("greet", ["name"])
    assert pinged["result"] == {}


async def test_a_version_that_nobody_knows_is_answered_with_one_that_we_speak():
    async with guest() as client:
        assert (await client.ask("initialize", protocolVersion="1999"))["result"][
            "protocolVersion"
        ] == "2025-06-18"


async def test_a_refused_call_is_an_answer_and_a_step():
    async with guest() as client:
        fine = await client.ask("tools/call", name="greet", arguments={"name": "Ada"})
        refused = await client.ask("tools/call", name="fly", arguments={})

    assert fine["result"] == {"content": [{"type": "text", "text": "Hello, Ada!"}], "isError": False}
    assert refused["result"]["isError"] is True
    assert [step.calls[0].name for step in client.visit.record.steps] == ["greet", "fly"]


async def test_calls_at_the_same_time_are_made_one_after_another():
    async with guest() as client:
        await asyncio.gather(
            *(client.ask("tools/call", name="greet", arguments={"name": str(n)}) for n in range(9))
        )

    assert len(client.visit.record.steps) == len(client.visit.session.calls) == 9


async def test_the_skill_is_a_resource_and_reading_it_is_noticed():
    async with guest() as client:
        (resource,) = (await client.ask("resources/list"))["result"]["resources"]
        assert client.visit.loaded is False
        read = await client.ask("resources/read", uri=resource["uri"])

    assert resource["description"] == "Greet."
    assert read["result"]["contents"][0]["text"].endswith(SKILL.body)
    assert client.visit.loaded is True


async def test_no_skill_is_no_resource():
    async with guest(skill=NO_SKILL) as client:
        assert (await client.ask("resources/list"))["result"]["resources"] == []
        assert "error" in await client.ask("resources/read", uri="skill:///SKILL.md")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": 1, "method": "tools/fly"}', -32601),
        (b'{"id": 1, "method": "tools/call", "params": {"name": 7}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": [1]}', -32602),
    ],
)
async def test_what_is_no_request_is_refused_as_the_protocol_says(body, code):
    async with guest() as client, client.http.post(client.door.mcp_url, data=body) as answer:
        assert (await answer.json())["error"]["code"] == code


@pytest.mark.parametrize("token", ["", "wrong", "\xe9"])
async def test_nothing_is_served_without_the_rollouts_token(token):
    async with MockOpenAI(default=says("hi")) as mock, guest(mock.url, token=token) as client:
        for path in ("/mcp", "/v1/chat/completions", "/nothing"):
            async with client.http.post(client.door.url + path, json={}) as answer:
                assert answer.status == 401
        async with client.http.get(client.door.url + "/v1/models") as answer:
            assert answer.status == 401
    assert mock.requests == []


async def test_what_is_not_served_says_what_is():
    async with guest() as client:
        async with client.http.get(client.door.mcp_url) as answer:
            assert answer.status == 405
        async with client.http.post(client.door.url + "/v1/responses", json={}) as answer:
            assert "executor_options.upstream" in (await answer.json())["error"]["message"]
    async with (
        MockOpenAI() as mock,
        guest(mock.url) as client,
        client.http.post(client.door.url + "/v1/responses", json={}) as answer,
    ):
        assert "/v1/chat/completions" in (await answer.json())["error"]["message"]


async def test_a_body_that_is_too_large_is_refused():
    async with (
        guest() as client,
        client.http.post(client.door.mcp_url, data=io.BytesIO(b" " * (17 << 20))) as answer,
    ):
        assert answer.status == 413


async def test_a_completion_passes_as_it_is_with_the_users_key():
    async with MockOpenAI(says("Good day.")) as mock, guest(mock.url) as client:
        status, body = await client.complete(user("hi"), temperature=0.3)

    assert status == 200 and json.loads(body)["choices"][0]["message"]["content"] == "Good day."
    assert mock.requests == [{"model": "m", "messages": [user("hi")], "temperature": 0.3}]
    assert mock.headers[0]["Authorization"] == "Bearer sk-upstream"
    assert client.visit.record.usage.prompt_tokens == 10


def chunk(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def streams(*events, raw=b"data: [DONE]\n\n"):
    whole = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + raw

    def answer(body):
        return web.Response(body=whole, content_type="text/event-stream")

    return answer


TWO_PARTS = (
    chunk({"role": "assistant", "content": "Let me"}),
    chunk({"content": " see."}),
    chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"in"'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": ': "desk"}'}}]}),
    chunk({}, "tool_calls"),
)
USED = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 4}}


async def test_a_stream_is_put_together_beside_and_its_usage_asked_for():
    async with MockOpenAI(streams(*TWO_PARTS, USED)) as mock, guest(mock.url, own=True) as client:
        status, body = await client.complete(user("hi"), stream=True)

    assert mock.requests[0]["stream_options"] == {"include_usage": True}
    assert status == 200 and body.endswith(b"data: [DONE]\n\n")
    assert body.count(b"data: ") == len(TWO_PARTS) + 1  # the usage was not asked for by the client
    (step,) = client.visit.record.steps
    assert step.text == "Let me see."
    assert step.calls == (ToolCall(name="look", arguments={"in": "desk"}, id="c1"),)
    assert client.visit.record.usage.prompt_tokens == 11


async def test_a_client_that_asks_for_the_usage_of_a_stream_gets_it():
    async with MockOpenAI(streams(*TWO_PARTS, USED)) as mock, guest(mock.url) as client:
        _, body = await client.complete(user("hi"), stream=True, stream_options={"include_usage": True})

    assert b'"prompt_tokens": 11' in body


async def test_a_stream_that_breaks_off_breaks_off_for_the_agent_and_is_blamed():
    cut = streams(*TWO_PARTS[:2], raw=b"")
    async with MockOpenAI(cut) as mock, guest(mock.url) as client:
        with pytest.raises(aiohttp.ClientError):
            await client.complete(user("hi"), stream=True)
        assert isinstance(client.door.proxy.blame(), ModelUnavailable)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (fails(429, message="slowly", retry_after="7"), 429),
        (sends_bytes(b"<html>", status=502), 502),
        (sends_bytes(b"not json"), 200),
        (resets(), 502),
        (breaks_off(), 502),
        (sends_bytes(b" " * (17 << 20)), 502),
    ],
)
async def test_a_failure_passes_on_and_is_blamed_until_a_call_succeeds(answer, status):
    async with MockOpenAI(answer, says("ok")) as mock, guest(mock.url) as client:
        assert (await client.complete(user("hi")))[0] == status
        assert isinstance(client.door.proxy.blame(), ModelUnavailable)

        await client.complete(user("hi"))

        assert client.door.proxy.blame() is None


async def test_how_long_to_wait_passes_on_too():
    async with MockOpenAI(fails(429, retry_after="7")) as mock, guest(mock.url) as client:
        body = {"messages": []}
        async with client.http.post(f"{client.door.model_url}/chat/completions", json=body) as answer:
            assert answer.headers["Retry-After"] == "7"


async def test_a_call_whose_agent_is_gone_does_not_go_on():
    async with MockOpenAI(default=hangs()) as mock, guest(mock.url) as client:
        asking = asyncio.create_task(client.complete(user("hi")))
        while not mock.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])

    assert client.visit.record.steps == ()


async def test_a_request_that_is_none_is_refused_before_it_is_passed_on():
    async with MockOpenAI() as mock, guest(mock.url) as client:
        for body in (b"{", b"[]", b'{"messages": 1}'):
            async with client.http.post(f"{client.door.model_url}/chat/completions", data=body) as answer:
                assert answer.status == 400
    assert mock.requests == []


async def test_own_calls_get_their_results_and_turns_from_the_next_request():
    turns = ("One.", "Two.")
    answered = MockOpenAI(calls("look", {}), says("Seen."), says("Bye."))
    result = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a desk"}]}
    async with answered as mock, guest(mock.url, own=True, turns=turns) as client:
        await client.complete(user("One."))
        await client.complete(user("One."), result)
        await client.complete(user("One."), result, user("Two."))
        client.visit.record.answered("Bye.")

    steps = client.visit.record.steps
    assert steps[0].observations == (Observation(text="a desk"),)
    assert [(step.turn, step.text) for step in steps] == [(0, ""), (0, "Seen."), (1, "Bye.")]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (SKILL.body, True),
        (json.dumps({"file": SKILL.body}), True),
        ('   1\t## Workflow\n   2\t1. Greet whom the "user" names.', True),
        ("## Workflow", False),
        ("greet: Greet.", False),
    ],
)
def test_a_body_is_known_again_in_what_a_model_is_shown(text, seen):
    assert shows(SKILL, [text]) is seen
    assert shows(NO_SKILL, [text]) is False
