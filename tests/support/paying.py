"""The counting world with a bill: every model answers over HTTP, and the server keeps each receipt.

An answer's text has a receipt in it, a hash of all that was asked. So a receipt in the store is
work that is kept, and the same receipt asked for again would be the same work paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from attrs import evolve
from support.counting import CountingSession
from support.mock_openai import Body, MockOpenAI, Scripted, answers

from wer import hookimpl
from wer.contracts import Model, ModelSetup
from wer.records import End, JsonObject, Message, Sampling, Skill, Step, Task, Trajectory
from wer_litellm.openai import named

RECEIPT = re.compile(r"receipt-[0-9a-f]{16}")


class Cashier:
    """A server in a thread of this process; what it answers is a function of what it is asked.

    Attributes:
        receipts: Every request that was answered, in order.
        faults: What it does instead of answering, one after the other; see `fail`.
        url: Ends in ``/v1``.
    """

    def __init__(self) -> None:
        self.receipts: list[str] = []
        self.url = ""
        self.faults: deque[Scripted] = deque()
        self._every = 1
        self._asked = 0
        self._away_s = 0.0
        self._bomb: tuple[int, int, float] | None = None
        self._over = False
        self._up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._down = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def __enter__(self) -> Cashier:
        self._thread.start()
        self._up.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over, self._away_s = True, 0.0
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join()
        self._loop.close()

    def counts(self) -> Mapping[str, int]:
        """How often each request came."""
        return Counter(self.receipts)

    def kill(self, pid: int, *, after: int, wait_s: float) -> None:
        """Kill a process so many requests from now, while it waits for or works on the answer."""
        self._bomb = (pid, len(self.receipts) + after, wait_s)

    def fail(self, *faults: Scripted, every: int = 1) -> None:
        """Have every so manieth request, the first one too, met with the next of these faults."""
        self.faults.extend(faults)
        self._every, self._asked = every, 0

    def die(self, *, for_s: float) -> None:
        """Drop all connections and listen again on the same port some time later."""
        self._away_s = for_s
        self._loop.call_soon_threadsafe(self._down.set)

    async def _serve(self) -> None:
        port = 0
        while not self._over:
            async with MockOpenAI(default=self._answer, port=port) as mock:
                self.url, port = mock.url, int(mock.url.split(":")[2].split("/")[0])
                self._up.set()
                await self._down.wait()
            self._down.clear()
            await asyncio.sleep(self._away_s)

    def _answer(self, body: Body) -> web.StreamResponse:
        self._asked += 1
        if self.faults and self._asked % self._every == 1 % self._every:
            return self.faults.popleft()(body)  # type: ignore[return-value]
        receipt = f"receipt-{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]}"
        self.receipts.append(receipt)
        if self._bomb is not None and len(self.receipts) >= self._bomb[1]:
            pid, _, wait_s = self._bomb
            self._bomb = None
            self._loop.call_later(wait_s, _kill, pid)
        return answers(_said(body, receipt))(body)  # type: ignore[return-value]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _said(body: Body, receipt: str) -> Mapping[str, Any]:
    """What a model says: the agent follows its skill, a writer tries, learns and merges."""
    system, asked = (body["messages"][place]["content"] for place in (0, 1))
    if asked.startswith("Count to "):
        if body["messages"][-1]["role"] == "tool":
            return {"content": receipt}
        able = "count up" in system or ("try" in system and body["seed"] % 2 == 0)
        up = {"type": "function", "function": {"name": "up", "arguments": "{}"}}
        goal = int(asked.removeprefix("Count to ").rstrip("."))
        return {"content": receipt, "tool_calls": [{**up, "id": f"c{n}"} for n in range(goal if able else 1)]}
    learnt = "# Failure" in asked and body["seed"] % 3 == 0
    knows = learnt or ("# Skill 1" in asked and "count up" in asked)
    step = "count up to the number" if knows else f"try {body['seed'] % 5} times"
    skill = f"name: counting\ndescription: Count.\n## Workflow\n1. {step}"
    return {"content": f"<think>{receipt}</think><skill>\n{skill}\n</skill>"}


class Asker:
    """A frozen agent that asks its model twice: what to do, and what to say of it."""

    def __init__(self, model: Model, options: JsonObject) -> None:
        self.model = model

    @property
    def identity(self) -> JsonObject:
        return {"agent": "asker", "model": dict(self.model.identity)}

    async def execute(self, task: Task, skill: Skill, session: CountingSession, seed: int) -> Trajectory:
        turn = await session.begin()
        chat = [Message(role="system", content=skill.body), Message(role="user", content=turn.message)]
        acting = await self.model.complete(chat, task.tools, Sampling(temperature=0.0, seed=seed))
        answer = await session.call(acting.calls)
        chat.append(Message(role="assistant", content=acting.text, calls=acting.calls))
        for call, seen in zip(acting.calls, answer.observations, strict=True):
            chat.append(Message(role="tool", content=seen.text, call_id=call.id))
        saying = await self.model.complete(chat, task.tools, Sampling(temperature=0.0, seed=seed))
        end = await session.say(saying.text)
        assert isinstance(end, End)
        steps = (
            Step(turn=0, text=acting.text, calls=acting.calls, observations=answer.observations),
            Step(turn=0, text=saying.text),
        )
        return Trajectory(messages=(turn.message,), steps=steps, end=end, seed=seed)


def kept(store: Path) -> set[str]:
    """The receipts of all that a store holds, whoever wrote to it last was killed or not."""
    if not store.is_file():
        return set()
    found: set[str] = set()
    with closing(sqlite3.connect(store)) as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            for row in db.execute(f"select * from {table}"):
                found.update(RECEIPT.findall(str(row)))
    return found


def _hasty(setup: ModelSetup) -> Model:
    """A served model that waits for half a second, not for ten minutes."""
    return evolve(named(setup.name), timeout=aiohttp.ClientTimeout(total=0.5))


@hookimpl
def wer_models() -> Mapping[str, object]:
    return {"hasty": _hasty}


@hookimpl
def wer_executors() -> Mapping[str, object]:
    return {"asker": Asker}
