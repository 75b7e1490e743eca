"""Agents outside of WER's process as frozen executors: programs and endpoints.

What differs between them is how they are asked, their `Way`. The rest is one: the episode's tools
over MCP and the model behind the recording proxy, for agents that call them; an outcome, from
agents that have tools of their own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from attrs import field, frozen

from wer.contracts import AgentSetup, Session, Settling
from wer.errors import AgentError, InfrastructureError
from wer.records import (
    UNTOLD,
    End,
    Json,
    JsonObject,
    Message,
    Outcome,
    Skill,
    Step,
    Task,
    Trajectory,
    Turn,
    Usage,
)
from wer_agents.assignment import assignment
from wer_agents.calling import until
from wer_agents.loopback import Door, opened
from wer_agents.outcomes import read_steps, settled
from wer_agents.proxy import Upstream
from wer_agents.recording import Record
from wer_agents.resetting import Reset
from wer_agents.visit import Visit

Ask: TypeAlias = Callable[[JsonObject], Awaitable[Outcome]]
"""Asks the agent once, with a request as `_Rollout.request` makes it."""


class Way(Protocol):
    """How an agent is asked."""

    @property
    def name(self) -> str:
        """What messages call the agent."""
        ...

    @property
    def identity(self) -> JsonObject:
        """What makes two agents the same one."""
        ...

    def opened(self, skill: Skill, token: str) -> AbstractAsyncContextManager[Ask]:
        """Get ready for one rollout, and leave nothing behind.

        Args:
            token: Never repeated in an error.
        """
        ...


@frozen(kw_only=True)
class OutsideAgent:
    """A `wer.contracts.Executor`. Holds no state of a rollout.

    Attributes:
        upstream: The user's model server, where the agent reaches it through the recording proxy.
        version: What the user says of all that nobody sees from here.
    """

    setup: AgentSetup
    way: Way
    reset: Reset
    upstream: Upstream | None = None
    version: str = ""

    @property
    def identity(self) -> JsonObject:
        """What is known of the agent, its model server and its reset."""
        return {
            **self.way.identity,
            "upstream": self.upstream.url if self.upstream else "",
            "reset": self.reset.identity,
            "version": self.version,
        }

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Have the agent act in every turn; or do the whole task, if it has tools of its own.

        Raises:
            AgentError: Its outcome is none, or that of another task; or the skill has scripts.
            InfrastructureError: The agent failed, or its model server did, or the sandbox broke.
            BudgetExhausted: Nothing is left to spend on its model calls.
        """
        if skill.scripts:
            raise AgentError(
                f"{self.way.name} has tools of its own, and a model's scripts ({', '.join(skill.scripts)}) run nowhere "
                "but in a sandbox of ours. Use a skill without scripts."
            )
        self.setup.check()
        await self.reset(task)
        own = isinstance(session, Settling)
        record = Record(skill=skill, own=own, turns=task.turns if own else ())
        visit = Visit(task=task, skill=skill, session=session, record=record)
        async with (
            opened(visit, self.upstream, self.setup) as door,
            self.way.opened(skill, visit.token) as ask,
        ):
            rollout = _Rollout(agent=self, task=task, seed=seed, visit=visit, door=door, ask=ask)
            try:
                return await (rollout.whole(session) if isinstance(session, Settling) else rollout.turns())
            finally:
                rollout.settle()
                await visit.close()


@frozen(kw_only=True, eq=False)
class _Rollout:
    """One rollout under way."""

    agent: OutsideAgent
    task: Task
    seed: int
    visit: Visit
    door: Door
    ask: Ask
    history: list[Message] = field(factory=list)
    asked: list[JsonObject] = field(factory=list)
    told: list[Outcome] = field(factory=list)
    began: float = field(factory=time.monotonic)

    async def turns(self) -> Trajectory:
        """Ask once a turn; the agent calls the tools that are served to it."""
        visit, session = self.visit, self.visit.session
        task = {"id": self.task.id, "domain": self.task.domain, "context": self.task.context}
        at: Turn | End = await session.begin()
        while isinstance(at, Turn):
            visit.record.turn = at.index
            outcome = await self._asked(self.request(at.message, task))
            self.history.append(Message(role="user", content=at.message))
            if outcome is None:
                assert visit.end is not None
                at = visit.end
            else:
                text = _answer(outcome, self.agent.way.name)
                visit.record.answered(text)
                self.history.append(Message(role="assistant", content=text))
                at = await session.say(text)
        messages = tuple(message.content for message in self.history if message.role == "user")
        return self._trajectory(messages, visit.record.steps, at)

    async def whole(self, session: Settling) -> Trajectory:
        """Ask once for all turns; the agent says what it did and left behind."""
        await self.visit.session.begin()
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
            self.agent.setup.charge(UNTOLD)

    async def _asked(self, request: JsonObject) -> Outcome | None:
        """Ask the agent; None when the environment ended the episode meanwhile."""
        name, proxy = self.agent.way.name, self.door.proxy
        self.asked.append(request)
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
        checked = settled(outcome, self.task, name)
        self.told.append(checked)
        if proxy is None and checked.usage is not None:
            self.agent.setup.charge(checked.usage)
        return checked

    @property
    def _unknown(self) -> bool:
        """Whether something of the costs is not known."""
        if self.door.proxy is not None:
            return self.visit.record.untold
        return len(self.told) < len(self.asked) or any(told.usage is None for told in self.told)

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


def _answer(outcome: Outcome, agent: str) -> str:
    """What an agent that calls WER's tools says at the end of its turn."""
    if outcome.state is not None:
        raise AgentError(
            f"{agent} told a state, and the state is that of the environment whose tools it calls. Leave it out."
        )
    steps = read_steps(outcome.messages, turns=())
    return steps[-1].text if steps else ""
