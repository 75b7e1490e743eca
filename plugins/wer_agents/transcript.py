"""A session as a function that calls tools by itself meets it: what it does is written down as it happens."""

from __future__ import annotations

import asyncio
import time

from wer.contracts import Session
from wer.records import End, Observation, Step, ToolCall, Trajectory, Turn, Usage
from wer.toolbox import EpisodeOver

_STOPPED = End(by="agent", why="stopped")


class Transcript:
    """An episode in which one call is run at a time, and each is a step.

    Attributes:
        over: Set when nothing can be called any more: the episode has ended, or the session broke.
        end: How it ended; None before.
        broken: Why the session broke, which an agent may have taken for a tool's failure.
    """

    def __init__(self, session: Session) -> None:
        self.over = asyncio.Event()
        self.end: End | None = None
        self.broken: Exception | None = None
        self._session = session
        self._messages: list[str] = []
        self._steps: list[Step] = []
        self._turn = 0
        self._one_at_a_time = asyncio.Lock()
        self._began = time.monotonic()

    async def begin(self) -> Turn | End:
        """The first turn; see `wer.contracts.Session`."""
        return self._reached(await self._session.begin())

    async def call(self, call: ToolCall) -> Observation:
        """Run one call.

        Raises:
            EpisodeOver: There is nothing more to do for the agent.
        """
        async with self._one_at_a_time:
            if self.over.is_set():
                raise EpisodeOver
            try:
                answer = await self._session.call((call,))
            except Exception as error:
                self.broken = error
                self.over.set()
                raise EpisodeOver from error
            self._steps.append(
                Step(turn=self._turn, text="", calls=(call,), observations=answer.observations)
            )
            if answer.end is not None:
                self._close(answer.end)
                raise EpisodeOver
            return answer.observations[0]

    async def say(self, text: str) -> Turn | End:
        """End the turn with the agent's answer; a turn that the environment has ended keeps that end."""
        async with self._one_at_a_time:
            if self.end is not None:
                return self.end
            self._steps.append(Step(turn=self._turn, text=text))
            return self._reached(await self._session.say(text))

    def leave(self) -> None:
        """From now on nothing can be called, whoever may still run."""
        self.over.set()

    def trajectory(self, *, seed: int, usage: Usage, skill_loaded: bool | None) -> Trajectory:
        """All of it, once the episode has ended."""
        return Trajectory(
            messages=tuple(self._messages),
            steps=tuple(self._steps),
            end=self.end or _STOPPED,
            seed=seed,
            usage=usage,
            wall_s=time.monotonic() - self._began,
            skill_loaded=skill_loaded,
        )

    def _reached(self, here: Turn | End) -> Turn | End:
        if isinstance(here, End):
            self._close(here)
        else:
            self._messages.append(here.message)
            self._turn = here.index
        return here

    def _close(self, end: End) -> None:
        self.end = end
        self.over.set()
