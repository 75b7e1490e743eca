"""One rollout of an agent outside of WER: what it is asked, and what is known of it in the end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import define, field

from wer.contracts import Settling
from wer.errors import InfrastructureError
from wer.records import UNTOLD, End, Json, JsonObject, Message, Outcome, Step, Task, Trajectory, Turn, Usage
from wer_agents.assignment import assignment
from wer_agents.calling import until
from wer_agents.loopback import Door
from wer_agents.messages import read_steps
from wer_agents.outcomes import last_answer, settled
from wer_agents.visit import Visit

Ask: TypeAlias = Callable[[JsonObject], Awaitable[Outcome]]
"""Asks the agent once, with a request as `Conversation.request` makes it."""


@define(kw_only=True, eq=False)
class Conversation:
    """One rollout under way.

    Attributes:
        name: What messages call the agent.
        charge: Told what the rollout cost as soon as it is known.
        asked: How often the agent was asked.
        told: Its outcomes, as far as it gave any.
    """

    name: str
    charge: Callable[[Usage], None]
    task: Task
    seed: int
    visit: Visit
    door: Door
    ask: Ask
    history: list[Message] = field(factory=list)
    asked: int = 0
    told: list[Outcome] = field(factory=list)
    began: float = field(factory=time.monotonic)

    async def turns(self) -> Trajectory:
        """Ask once a turn; the agent calls the tools that are served to it."""
        visit = self.visit
        task = {"id": self.task.id, "domain": self.task.domain, "context": self.task.context}
        at: Turn | End = await visit.begin()
        while isinstance(at, Turn):
            outcome = await self._asked(self.request(at.message, task))
            self.history.append(Message(role="user", content=at.message))
            if outcome is None:
                assert visit.end is not None
                at = visit.end
            else:
                text = last_answer(outcome, self.name)
                self.history.append(Message(role="assistant", content=text))
                at = await visit.say(text)
        return self._trajectory(tuple(visit.messages), visit.record.steps, at)

    async def whole(self, session: Settling) -> Trajectory:
        """Ask once for all turns; the agent says what it did and left behind."""
        await self.visit.begin()
        task = assignment(self.task)
        outcome = await self._asked(self.request("\n\n".join(task.turns), task.table()))
        assert outcome is not None  # nothing but the agent ends such an episode
        steps = read_steps(outcome.messages, turns=self.task.turns)
        if self.visit.record.asked:
            if isinstance(outcome.messages, str):
                self.visit.record.answered(outcome.messages)
            steps = self.visit.record.steps
        return self._trajectory(self.task.turns, steps, await session.settle(outcome))

    def request(self, message: str, task: JsonObject) -> dict[str, Json]:
        """What the agent is told; how it gets the skill is up to its way."""
        token, door = self.visit.token, self.door
        return {
            "task": task,
            "message": message,
            "history": [{"role": each.role, "content": each.content} for each in self.history],
            "seed": self.seed,
            "mcp": None if self.visit.record.own else {"url": door.mcp_url, "token": token},
            "model": {"url": door.model_url, "token": token} if door.proxy else None,
        }

    def settle(self) -> None:
        """Book what is not known of the costs; what is was booked at once."""
        if self._unknown:
            self.charge(UNTOLD)

    async def _asked(self, request: JsonObject) -> Outcome | None:
        """Ask the agent; None when the environment ended the episode meanwhile."""
        proxy = self.door.proxy
        self.asked += 1
        try:
            outcome: Outcome | None = await until(self.ask(request), self.visit.over)
        except InfrastructureError as error:
            if proxy is None or (blamed := proxy.blame()) is None:
                raise
            raise blamed from error
        await self.visit.settle()
        broken = self.visit.error or (proxy.blame() if proxy else None)
        if broken is not None:
            raise broken
        if outcome is None or self.visit.end is not None:
            return None
        checked = settled(outcome, self.task, self.name)
        self.told.append(checked)
        if proxy is None and checked.usage is not None:
            self.charge(checked.usage)
        return checked

    @property
    def _unknown(self) -> bool:
        """Whether something of the costs is not known."""
        if self.door.proxy is not None:
            return self.visit.record.untold
        return len(self.told) < self.asked or any(told.usage is None for told in self.told)

    def _usage(self) -> Usage:
        told = [each.usage for each in self.told if each.usage is not None]
        known = self.visit.record.usage if self.door.proxy else sum(told, Usage())
        return known + UNTOLD if self._unknown else known

    def _loaded(self) -> bool | None:
        """Whether the agent read the skill: by what passed through us, else by its own word."""
        visit = self.visit
        if visit.skill.empty:
            return None
        if visit.loaded or visit.record.shown:
            return True
        said = [told.skill_loaded for told in self.told if told.skill_loaded is not None]
        if said:
            return any(said)
        return False if visit.record.asked else None

    def _trajectory(self, messages: tuple[str, ...], steps: tuple[Step, ...], end: End) -> Trajectory:
        return Trajectory(
            messages=messages,
            steps=steps,
            end=end,
            seed=self.seed,
            usage=self._usage(),
            wall_s=time.monotonic() - self.began,
            skill_loaded=self._loaded(),
        )
