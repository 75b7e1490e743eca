"""A mock server that plays every role of a BFCL run: it writes skills, and acts well on some seeds.

As executor it makes the reference's calls of the turn when its system prompt holds the good
skill, or on half of the seeds when it holds any other, and none without a skill.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aiohttp import web
from support.mock_openai import Body, MockOpenAI

from wer.contracts import Environment
from wer_bfcl import benchmark
from wer_bfcl.reference import reference

GOOD = "Go to the right folder first."
DRAFT = "Read the request."


def _skill(step: str) -> str:
    return (
        "<think>The agent skipped a step.</think>\n<skill>\nname: bfcl-skill\n"
        f"description: Multi-turn tool use.\n## Workflow\n1. {step}\n</skill>"
    )


def _references(environment: Environment) -> Mapping[str, list[Any]]:
    data = benchmark.load()
    return {
        message: list(calls)
        for domain in environment.domains()
        for split in ("train", "test")
        for task in environment.tasks(domain, split)  # type: ignore[arg-type]
        for message, calls in zip(task.turns, reference(data, task), strict=False)
    }


def player(environment: Environment) -> Any:
    """The server's answer to any request of a run."""
    return acting(_references(environment))


def acting(references: Mapping[str, list[Any]]) -> Any:
    """The same for any tasks, given the calls that each user message asks for."""

    def act(body: Body) -> web.StreamResponse:
        system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
        if "<skill>" in system:
            learnt = "# Failure" in body["messages"][-1]["content"] or GOOD in body["messages"][-1]["content"]
            return reply({"role": "assistant", "content": _skill(GOOD if learnt else DRAFT)}, "stop")
        able = GOOD in system or (DRAFT in system and body["seed"] % 2 == 0)
        last = body["messages"][-1]
        wanted = references.get(last["content"], []) if last["role"] == "user" and able else []
        if not wanted:
            return reply({"role": "assistant", "content": "Done."}, "stop")
        calls = [
            {
                "id": f"c{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for i, call in enumerate(wanted)
        ]
        return reply({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")

    return act


def reply(message: Mapping[str, Any], finish: str) -> web.StreamResponse:
    return web.json_response(
        {
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
    )


@contextmanager
def serving(mock: MockOpenAI) -> Iterator[MockOpenAI]:
    """Serve from a thread of its own, for tests that call the command line."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(mock.__aenter__(), loop).result(30)
        yield mock
    finally:
        asyncio.run_coroutine_threadsafe(mock.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
