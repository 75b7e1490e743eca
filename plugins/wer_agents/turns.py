"""One rollout of a function that calls WER's tools: its turns, and what it says of itself in each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from attrs import define, field, frozen

from wer.errors import AgentError
from wer.records import UNTOLD, End, Observation, Outcome, Task, ToolCall, Turn, Usage
from wer.toolbox import EpisodeOver
from wer_agents.calling import call, is_coroutine, until
from wer_agents.episode import Episode
from wer_agents.finding import Found
from wer_agents.outcomes import last_answer, read_usage, settled


@frozen(kw_only=True)
class _Told:
    """What an agent said about itself in one turn."""

    usage: Usage
    skill_loaded: bool | None


@define(kw_only=True, eq=False)
class Turns:
    """One rollout under way.

    Attributes:
        charge: Told what a turn cost as soon as the agent says it.
    """

    episode: Episode
    agent: Found
    task: Task
    charge: Callable[[Usage], None]
    _told: list[_Told] = field(factory=list)
    _begun: int = 0

    @property
    def skill_loaded(self) -> bool | None:
        """Whether it read the skill in any turn, as far as it says."""
        said = [told.skill_loaded for told in self._told if told.skill_loaded is not None]
        return any(said) if said else None

    def caller(self) -> Callable[[ToolCall], Any]:
        """What runs a call of a tool: a coroutine, or for an agent in a thread a function that waits."""
        if is_coroutine(self.agent.function):
            return self._call
        loop = asyncio.get_running_loop()

        def wait_for(wanted: ToolCall) -> Observation:
            if self.episode.over.is_set():  # the loop may be gone too
                raise EpisodeOver
            try:
                return asyncio.run_coroutine_threadsafe(self._call(wanted), loop).result()
            except CancelledError:
                raise EpisodeOver from None

        return wait_for

    async def turn(self, **offered: Any) -> Turn | End:
        """Have the agent act in one turn, and take its answer."""
        name = f"{self.agent.name} on {self.task.id}"
        self._begun += 1
        acting = call(name, self.agent.function, **self.agent.arguments(**offered))
        answer = await until(acting, self.episode.over)
        await self.episode.settle()
        if self.episode.error is not None:
            raise self.episode.error
        if self.episode.end is not None:
            return self.episode.end
        outcome = self._outcome(answer)
        text = last_answer(outcome, self.agent.name)
        self._note(read_usage(outcome.usage), outcome.skill_loaded)
        return await self.episode.say(text)

    def settle(self) -> Usage:
        """What the rollout used: as said, and unknown once where a turn didn't say, or failed."""
        known = sum((told.usage for told in self._told if not told.usage.untold), Usage())
        if len(self._told) == self._begun and not any(told.usage.untold for told in self._told):
            return known
        self.charge(UNTOLD)
        return known + UNTOLD

    async def _call(self, wanted: ToolCall) -> Observation:
        answer = await self.episode.call(wanted)
        if answer is None or answer.end is not None:
            raise EpisodeOver
        return answer.observations[0]

    def _note(self, usage: Usage, skill_loaded: bool | None) -> None:
        self._told.append(_Told(usage=usage, skill_loaded=skill_loaded))
        if not usage.untold:
            self.charge(usage)

    def _outcome(self, answer: Any) -> Outcome:
        """What it returned; a text is its answer alone."""
        if isinstance(answer, str):
            return Outcome(answer)
        if not isinstance(answer, Outcome):
            raise AgentError(
                f"{self.agent.name} returned {answer!r:.80} of type {type(answer).__name__} on {self.task.id}; "
                "expected its answer to the user as a str ('' if it says nothing), or a wer.Outcome(answer, usage=...)."
            )
        return settled(answer, self.task, self.agent.name)
