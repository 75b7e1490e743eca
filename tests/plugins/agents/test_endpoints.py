"""An HTTP endpoint as the frozen agent: what it is sent, and what each of its answers stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from support.mock_openai import MockOpenAI, says

from wer.conformance.scripts import TASK, ScriptedSession
from wer.contracts import AgentSetup
from wer.domain.settled import SettledSession
from wer.errors import AgentError, ConfigError, InfrastructureError, ModelError, ModelUnavailable
from wer.records import NO_SKILL, UNTOLD, Skill, Task, Usage
from wer_agents import wer_agents

SKILL = Skill(name="greet", description="Greet.", body="## Workflow\n1. Greet.\n")
LONE = Task(
    id="desk/a", env="desk", domain="desk", split="train", turns=("Do it.",), setup={"state": {"open": [1]}}
)


@asynccontextmanager
async def serving(answer) -> AsyncIterator[tuple[str, list]]:
    """Serve ``answer(request, body)`` on the loopback; give the address and all bodies that came."""
    bodies = []

    async def handle(request):
        bodies.append(await request.json())
        return await answer(request, bodies[-1])

    app = web.Application()
    app.router.add_post("/act", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/act", bodies
    finally:
        await runner.cleanup()


def always(*given, **named):
    async def answer(request, body):
        return web.Response(*given, **named)

    return answer


def telling(told):
    async def answer(request, body):
        return web.json_response(told)

    return answer


def made(url, *, tools=False, charged=None, **options):
    charge = (charged if charged is not None else []).append
    return wer_agents()["http"](AgentSetup(name=url, tools=tools, options=options, charge=charge))


async def settle(url, *, skill=NO_SKILL, **more):
    session = SettledSession(LONE)
    trajectory = await made(url, **more).execute(LONE, skill, session, 5)
    return trajectory, await session.evidence()


async def test_an_endpoint_is_sent_task_skill_and_seed_and_tells_its_outcome():
    told = {
        "messages": "All closed.",
        "state": {"open": []},
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        "skill_loaded": True,
    }
    charged = []
    async with serving(telling(told)) as (url, bodies):
        trajectory, evidence = await settle(url, skill=SKILL, charged=charged)

    (body,) = bodies
    assert body["task"]["turns"] == ["Do it."] and body["task"]["state"] == {"open": [1]}
    assert body["skill"] == {"name": "greet", "description": "Greet.", "body": SKILL.body}
    assert (body["seed"], body["message"], body["mcp"], body["model"]) == (5, "Do it.", None, None)
    assert evidence.turns[-1].state == {"open": []}
    assert trajectory.skill_loaded is True
    assert charged == [Usage(calls=1, prompt_tokens=3, completion_tokens=2, usd=None)]


async def test_no_skill_is_an_empty_skill_and_never_none():
    async with serving(telling("done")) as (url, bodies):
        trajectory, _ = await settle(url)

    assert bodies[0]["skill"] == {"name": "", "description": "", "body": ""}
    assert trajectory.usage == UNTOLD and trajectory.skill_loaded is None


async def test_an_endpoint_can_call_the_episodes_tools_and_the_proxied_model():
    async def answer(request, body):
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "greet", "arguments": {"name": "Ada"}},
        }
        asked = {"model": "m", "messages": [{"role": "user", "content": body["message"]}]}
        headers = {"Authorization": f"Bearer {body['mcp']['token']}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            async with client.post(body["model"]["url"] + "/chat/completions", json=asked):
                pass
            async with client.post(body["mcp"]["url"], json=call) as told:
                result = (await told.json())["result"]
        return web.json_response({"messages": result["content"][0]["text"]})

    session = ScriptedSession()
    async with MockOpenAI(default=says("Let me greet.")) as mock, serving(answer) as (url, _):
        trajectory = await made(url, tools=True, upstream=mock.url).execute(TASK, SKILL, session, 5)

    assert session.said == ["Hello, Ada!", "Hello, Ada!"]
    assert [step.text for step in trajectory.steps][:2] == ["Let me greet.", "Hello, Ada!"]
    assert trajectory.usage.calls == 2


async def test_headers_come_from_the_environment_and_are_never_repeated(monkeypatch):
    monkeypatch.setenv("DESK_AUTH", "Bearer very-secret")

    async def refuse(request, body):
        return web.Response(status=403, text=f"not {request.headers['Authorization']}")

    async with serving(refuse) as (url, _):
        agent = made(url, headers={"Authorization": "DESK_AUTH"})
        with pytest.raises(ModelError, match=r"answered 403 \(not \*\*\*\)") as failed:
            await agent.execute(LONE, NO_SKILL, SettledSession(LONE), 5)

    assert "secret" not in f"{failed.value}{agent}{agent.identity}"


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (always(status=500, text="it broke"), InfrastructureError, "answered 500: it broke"),
        (always(status=429, text="slowly"), InfrastructureError, "answered 429: slowly"),
        (always(status=404, text="nothing"), ModelError, "answered 404 .*check the address"),
        (
            always(status=307, headers={"Location": "http://elsewhere/"}),
            ModelError,
            r"answered 307 \(nothing\).*address, which is not left for another",
        ),
        (always(text="<html>", content_type="text/html"), ModelUnavailable, r"no JSON \(text/html"),
        (always(text='{"messages": "hal'), ModelUnavailable, "no JSON"),
        (always(body=b" " * (17 << 20)), ModelError, "more than 16 MiB"),
        (telling(7), AgentError, "expected a JSON object"),
        (telling({"state": 1}), AgentError, "messages of your agent at http"),
        (telling({"messages": "", "task": "desk/b"}), AgentError, "answered 'desk/b'"),
        (telling({"messages": "", "state": float("nan")}), AgentError, "no plain JSON"),
        (telling({"messages": [{"role": "robot"}]}), AgentError, "message 1 of your agent"),
    ],
)
async def test_an_answer_that_is_no_outcome_is_named(answer, kind, complaint):
    async with serving(answer) as (url, _):
        with pytest.raises(kind, match=complaint) as failed:
            await settle(url)

    assert type(failed.value) is kind  # which says whether the rollout is tried again


async def test_an_endpoint_that_is_not_there_is_an_infrastructure_failure(unused_tcp_port):
    with pytest.raises(InfrastructureError, match="Start it, or check the address"):
        await settle(f"http://127.0.0.1:{unused_tcp_port}/act")


async def test_an_endpoint_that_hangs_can_be_cancelled():
    begun = asyncio.Event()

    async def hang(request, body):
        begun.set()
        await asyncio.Event().wait()

    async with serving(hang) as (url, _):
        rollout = asyncio.create_task(settle(url))
        await begun.wait()
        rollout.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rollout


@pytest.mark.parametrize(
    ("url", "options", "complaint"),
    [
        ("http://", {}, "is no address"),
        ("http://me:pw@host/", {}, "settings are stored"),
        ("http://host/", {"headers": {"X-Key": "NOT_SET_ANYWHERE"}}, "which is not set"),
        ("http://host/", {"skills": "x"}, "skills"),
    ],
)
def test_an_address_that_cannot_work_is_refused_at_once(url, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        made(url, **options)
