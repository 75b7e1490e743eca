"""One rollout as a program outside of WER meets it: the episode behind a token."""

from __future__ import annotations

import asyncio
import secrets

from attrs import define, field

from wer.contracts import Session
from wer.records import Answer, End, Skill, Task, ToolCall
from wer_agents.recording import Record


@define(kw_only=True, eq=False)
class Visit:
    """What a token opens, until the rollout is over.

    Attributes:
        token: Shown by whoever calls a tool of the episode or the model behind the proxy.
        over: Set when there is nothing more to do: the session ended the episode, or broke.
        end: How the session ended it.
        error: Why it broke; whoever runs the rollout raises it.
        loaded: Whether the agent read the skill through us.
    """

    task: Task
    skill: Skill
    session: Session
    record: Record
    token: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    over: asyncio.Event = field(factory=asyncio.Event)
    end: End | None = None
    error: Exception | None = None
    loaded: bool = False
    _line: asyncio.Lock = field(factory=asyncio.Lock)
    _running: set[asyncio.Task[Answer | None]] = field(factory=set)

    async def call(self, call: ToolCall) -> Answer | None:
        """Call a tool of the episode, one at a time; None when the episode is over.

        The call goes on when its caller hangs up: a session can't be left in the midst of one.
        """
        running = asyncio.create_task(self._call(call))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def settle(self) -> None:
        """Wait for the calls that are under way."""
        if self._running:
            await asyncio.wait(set(self._running))

    async def close(self) -> None:
        """Give up the calls that are under way: the rollout has no end to speak of."""
        for running in set(self._running):
            running.cancel()
        await self.settle()

    async def _call(self, call: ToolCall) -> Answer | None:
        async with self._line:
            if self.over.is_set():
                return None
            try:
                answer = await self.session.call((call,))
            except Exception as error:  # of the sandbox or of us; raised by whoever runs the rollout
                self.error = error
                self.over.set()
                return None
            self.record.called(call, answer.observations)
            if answer.end is not None:
                self.end = answer.end
                self.over.set()
            return answer
