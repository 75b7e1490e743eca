"""A session as a user's own agent meets it: one call at a time, and what it does is written down as it happens."""

from __future__ import annotations

import asyncio

from attrs import define, field

from wer.contracts import Session
from wer.records import Answer, End, ToolCall, Turn
from wer_agents.recording import Record


@define(kw_only=True, eq=False)
class Episode:
    """One rollout under way.

    Attributes:
        messages: What the user said until now.
        over: Set when there is nothing more to do: the session ended the episode, or broke.
        end: How the session ended it; None before.
        error: Why it broke, which an agent may have taken for a tool's failure; whoever runs the rollout raises it.
    """

    session: Session
    record: Record
    messages: list[str] = field(factory=list)
    over: asyncio.Event = field(factory=asyncio.Event)
    end: End | None = None
    error: Exception | None = None
    _line: asyncio.Lock = field(factory=asyncio.Lock)
    _running: set[asyncio.Task[Answer | None]] = field(factory=set)

    async def begin(self) -> Turn | End:
        """The first turn; see `wer.contracts.Session`."""
        return self._reached(await self.session.begin())

    async def call(self, call: ToolCall) -> Answer | None:
        """Call a tool, one at a time; None when the episode is over.

        The call goes on when its caller hangs up: a session can't be left in the midst of one.
        """
        running = asyncio.create_task(self._call(call))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def say(self, text: str) -> Turn | End:
        """End the turn with the agent's answer; a turn that the environment has ended keeps that end."""
        async with self._line:
            if self.end is not None:
                return self.end
            self.record.answered(text)
            return self._reached(await self.session.say(text))

    async def settle(self) -> None:
        """Wait for the calls that are under way."""
        if self._running:
            await asyncio.wait(set(self._running))

    async def close(self) -> None:
        """Let nothing be called any more, whoever may still run, and give up the calls that are under way."""
        self.over.set()
        for running in set(self._running):
            running.cancel()
        await self.settle()

    async def _call(self, call: ToolCall) -> Answer | None:
        async with self._line:
            if self.over.is_set():
                return None
            try:
                answer = await self.session.call((call,))
            except Exception as error:  # of the sandbox or of us
                self.error = error
                self.over.set()
                return None
            self.record.called(call, answer.observations)
            if answer.end is not None:
                self._reached(answer.end)
            return answer

    def _reached(self, here: Turn | End) -> Turn | End:
        if isinstance(here, End):
            self.end = here
            self.over.set()
        else:
            self.messages.append(here.message)
            self.record.turn = here.index
        return here
