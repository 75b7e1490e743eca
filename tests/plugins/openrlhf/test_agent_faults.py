"""The agent in OpenRLHF's rollout actor when its driver misbehaves: never a reward that nobody gave."""

import asyncio
import importlib.util
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

import wer_openrlhf

STAND_IN = Path(__file__).parents[2] / "support" / "stand_in_openrlhf"
Answer = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]


class Engine:
    async def generate(self, prompt_token_ids: list[int], sampling_params: Any, **_: Any) -> Any:
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=[104, 109], finish_reason="stop")])


class Tokenizer:
    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return bytes(tokens).decode()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The agent as OpenRLHF loads it: a copy, from a folder of its own."""
    monkeypatch.syspath_prepend(str(STAND_IN))
    shutil.copy(Path(wer_openrlhf.__file__).with_name("agent.py"), tmp_path)
    spec = importlib.util.spec_from_file_location("agent_module", tmp_path / "agent.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setattr(loaded, "_WAIT_S", 0.0)
    return loaded


def agent(module: ModuleType, url: str) -> Any:
    connection = {"url": url, "token": "t", "top_k": 50}
    Path(module.__file__ or "").with_name("connection.json").write_text(json.dumps(connection))
    return module.AgentExecutor()


async def write(executor: Any) -> dict[str, Any]:
    label = json.dumps({"state": "s", "first": 0})
    params = SimpleNamespace(max_tokens=8, top_k=-1)
    try:
        answer: dict[str, Any] = await executor.execute("p", label, params, 99, Tokenizer(), Engine())
        return answer
    finally:
        await executor.close()


@asynccontextmanager
async def answering(**routes: Answer) -> AsyncIterator[str]:
    app = web.Application()
    for name, answer in routes.items():

        async def handle(request: web.Request, answer: Answer = answer) -> web.StreamResponse:
            return await answer(await request.json())

        app.router.add_post(f"/{name}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def place(_: dict[str, Any]) -> web.StreamResponse:
    return web.json_response({"index": 0, "recorded": None})


def pays(reward: float) -> Answer:
    async def answer(_: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"reward": reward, "logs": {}})

    return answer


async def test_a_service_that_is_gone_ends_the_rollout_actor_with_the_reason(module):
    with pytest.raises(RuntimeError, match="the program that started this training has ended"):
        await write(agent(module, "http://127.0.0.1:1"))


async def test_a_service_that_hangs_counts_as_gone(module, monkeypatch):
    monkeypatch.setattr(module, "_REQUEST_S", 0.05)

    async def hang(_: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    async with answering(claim=hang) as url:
        with pytest.raises(RuntimeError, match=r"does not answer \(TimeoutError\)"):
            await write(agent(module, url))


async def test_a_reward_that_is_not_a_number_is_refused_and_told_to_the_driver(module):
    told: list[str] = []

    async def fault(body: dict[str, Any]) -> web.StreamResponse:
        told.append(body["what"])
        return web.Response()

    async with answering(claim=place, evaluate=pays(float("nan")), fault=fault) as url:
        with pytest.raises(ValueError, match="the reward nan"):
            await write(agent(module, url))

    assert told == ["ValueError: the evaluation service answered with the reward nan"]


async def test_a_refusal_ends_the_rollout_actor_and_is_not_asked_again(module):
    asked = 0

    async def refuse(_: dict[str, Any]) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.Response(status=503, text="an evaluation failed")

    async with answering(claim=place, evaluate=refuse) as url:
        with pytest.raises(Exception, match=r"WER stops the training \(503 an evaluation failed\)"):
            await write(agent(module, url))

    assert asked == 1


async def test_a_reward_that_takes_long_is_asked_for_until_it_is_there(module):
    left = 3

    async def wait(_: dict[str, Any]) -> web.StreamResponse:
        nonlocal left
        left -= 1
        return web.json_response({"pending": True} if left else {"reward": 0.5, "logs": {"a": 1.0}})

    async with answering(claim=place, evaluate=wait, result=wait) as url:
        answer = await write(agent(module, url))

    assert (answer["reward"], answer["scores"], answer["extra_logs"]) == (0.5, 0.5, {"a": 1.0})
    assert left == 0


async def test_a_recorded_answer_is_given_without_asking_the_engine(module):
    sent: list[dict[str, Any]] = []

    async def recorded(_: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"index": 2, "recorded": {"token_ids": [111, 107], "logprobs": []}})

    async def take(body: dict[str, Any]) -> web.StreamResponse:
        sent.append(body)
        return web.json_response({"reward": 0.25, "logs": {}})

    async with answering(claim=recorded, evaluate=take) as url:
        answer = await write(agent(module, url))

    assert [(body["index"], body["text"], body["token_ids"]) for body in sent] == [(2, "ok", [111, 107])]
    assert answer["observation_tokens"] == [112, 111, 107]
