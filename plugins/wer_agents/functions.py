"""Functions as frozen agents: those that call WER's tools once a turn, and those that have tools of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from attrs import field, frozen

from wer.contracts import AgentSetup, Executor, Session, Settling
from wer.errors import AgentError
from wer.records import (
    UNTOLD,
    End,
    JsonObject,
    Observation,
    Outcome,
    Skill,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Usage,
)
from wer.skills.cleaning import harmless
from wer.tables import structure
from wer.toolbox import EpisodeOver, Tools
from wer_agents import resetting
from wer_agents.assignment import assignment
from wer_agents.calling import call, is_coroutine, until
from wer_agents.finding import Found, find_agent
from wer_agents.outcomes import read_steps, read_usage, settled
from wer_agents.resetting import Reset
from wer_agents.transcript import Transcript


@frozen(kw_only=True)
class FunctionOptions:
    """The table ``[executor_options]`` of a function.

    Attributes:
        reset: A function, ``agent.py:reset``, that puts back what the agent's own tools work on, or ``command: ...``.
            It is called before each rollout; a function with the task, if it takes one.
        isolation: What isolates rollouts of an agent with tools of its own from each other, in your words, for the
            report. Empty: nothing does, and they run one at a time.
        version: Of what the function's file doesn't show, such as a prompt that it fetches. Another version is
            another agent.
    """

    reset: str = ""
    isolation: str = ""
    version: str = ""


def function_agent(setup: AgentSetup) -> Executor:
    """Make the executor of a function.

    Raises:
        ConfigError: It can't be found or imported.
        AgentError: It can't be called, or doesn't fit the environment.
    """
    options = structure(FunctionOptions, setup.options, where="executor_options")
    agent = find_agent(setup.name)
    reset = resetting.find(options.reset)
    owns = "task" in agent.takes
    if owns and setup.tools:
        raise AgentError(
            f"{agent.name} takes a task and has tools of its own, and this environment has tools to be called. Write "
            "agent(turn, skill, tools) for it; or name an environment without tools, such as "
            "wer.Domain(tasks='tasks.jsonl', check=check)."
        )
    if not owns and not setup.tools:
        raise AgentError(
            f"{agent.name} takes tools, and this environment has none. Write agent(task, skill, seed) with tools of "
            "its own, which returns a wer.Outcome(messages, state); or give the Domain a class with tools."
        )
    kind = OwnTools if owns else CallsTools
    return kind(agent=agent, reset=reset, options=options, setup=setup)


@frozen(kw_only=True)
class _Function:
    """A user's function as a `wer.contracts.Executor`. Holds no state of a rollout."""

    agent: Found
    reset: Reset
    options: FunctionOptions
    setup: AgentSetup

    @property
    def identity(self) -> JsonObject:
        """The code, and what the user says of the rest."""
        return {
            "executor": "function",
            "agent": self.agent.name,
            "code": self.agent.code,
            "reset": self.reset.identity,
            "version": self.options.version,
        }

    async def _prepare(self, task: Task) -> None:
        self.setup.check()
        await self.reset(task)


@frozen(kw_only=True)
class OwnTools(_Function):
    """An agent that is given a task and tells its outcome."""

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Have the agent do the whole task.

        Raises:
            AgentError: It answered with something else, or the skill has scripts.
            InfrastructureError: It raised.
        """
        if skill.scripts or not isinstance(session, Settling):
            raise AgentError(
                f"{self.agent.name} has tools of its own, and can't call those of a skill's scripts "
                f"({', '.join(skill.scripts)}). Use a skill without scripts."
            )
        await self._prepare(task)
        began = time.monotonic()
        await session.begin()
        given = self.agent.arguments(task=assignment(task), skill=text_of(skill), seed=seed)
        told = await call(f"{self.agent.name} on {task.id}", self.agent.function, **given)
        outcome = settled(told, task, self.agent.name)
        usage = read_usage(outcome.usage)
        self.setup.charge(usage)
        steps = read_steps(outcome.messages, turns=task.turns)
        return Trajectory(
            messages=task.turns,
            steps=steps,
            end=await session.settle(outcome),
            seed=seed,
            usage=usage,
            wall_s=time.monotonic() - began,
            skill_loaded=outcome.skill_loaded,
        )


@frozen(kw_only=True)
class CallsTools(_Function):
    """An agent that is called once a turn, and calls WER's tools."""

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Have the agent act in every turn; the environment alone limits its calls.

        Raises:
            AgentError: It answered with something else, or takes no context where there is one.
            InfrastructureError: It raised, or the sandbox broke.
        """
        if task.context and "context" not in self.agent.takes:
            raise AgentError(
                f"{task.id} has a policy that the agent must follow, and {self.agent.name} doesn't take it. Add a "
                "parameter context, and put it into the prompt before the skill."
            )
        await self._prepare(task)
        episode = _Episode(
            transcript=Transcript(session), agent=self.agent, task=task, charge=self.setup.charge
        )
        tools = Tools(task.tools, episode.caller())
        memory: dict[str, Any] = {}
        here: Turn | End = await episode.transcript.begin()
        try:
            while isinstance(here, Turn):
                here = await episode.turn(
                    turn=here.message,
                    skill=text_of(skill),
                    tools=tools,
                    context=task.context,
                    memory=memory,
                    seed=seed,
                )
        finally:
            episode.transcript.leave()
        return episode.transcript.trajectory(
            seed=seed, usage=episode.settle(), skill_loaded=episode.skill_loaded
        )


@frozen(kw_only=True)
class _Told:
    """What an agent said about itself in one turn."""

    usage: Usage
    skill_loaded: bool | None


@frozen(kw_only=True, eq=False)
class _Episode:
    """One rollout of an agent that calls WER's tools."""

    transcript: Transcript
    agent: Found
    task: Task
    charge: Callable[[Usage], None]
    _told: list[_Told] = field(factory=list)

    @property
    def skill_loaded(self) -> bool | None:
        """Whether it read the skill in any turn, as far as it says."""
        said = [told.skill_loaded for told in self._told if told.skill_loaded is not None]
        return any(said) if said else None

    def caller(self) -> Callable[[ToolCall], Any]:
        """What runs a call of a tool: a coroutine, or for an agent in a thread a function that waits."""
        if is_coroutine(self.agent.function):
            return self.transcript.call
        loop = asyncio.get_running_loop()

        def wait_for(wanted: ToolCall) -> Observation:
            if self.transcript.over.is_set():  # the loop may be gone too
                raise EpisodeOver
            try:
                return asyncio.run_coroutine_threadsafe(self.transcript.call(wanted), loop).result()
            except CancelledError:
                raise EpisodeOver from None

        return wait_for

    async def turn(self, **offered: Any) -> Turn | End:
        """Have the agent act in one turn, and take its answer."""
        name = f"{self.agent.name} on {self.task.id}"
        answer = await until(
            call(name, self.agent.function, **self.agent.arguments(**offered)), self.transcript.over
        )
        if self.transcript.broken is not None:
            raise self.transcript.broken
        if self.transcript.end is not None:
            self._note(UNTOLD, None)
            return self.transcript.end
        text, outcome = self._read(answer)
        self._note(
            read_usage(outcome.usage) if outcome else UNTOLD, outcome.skill_loaded if outcome else None
        )
        return await self.transcript.say(text)

    def settle(self) -> Usage:
        """What the rollout used: as said, and unknown once where a turn didn't say."""
        known = sum((told.usage for told in self._told if not told.usage.untold), Usage())
        if all(not told.usage.untold for told in self._told):
            return known
        self.charge(UNTOLD)
        return known + UNTOLD

    def _note(self, usage: Usage, skill_loaded: bool | None) -> None:
        self._told.append(_Told(usage=usage, skill_loaded=skill_loaded))
        if not usage.untold:
            self.charge(usage)

    def _read(self, answer: Any) -> tuple[str, Outcome | None]:
        if isinstance(answer, str):
            return answer, None
        if not isinstance(answer, Outcome):
            raise AgentError(
                f"{self.agent.name} returned {answer!r:.80} of type {type(answer).__name__} on {self.task.id}; "
                "expected its answer to the user as a str ('' if it says nothing), or a wer.Outcome(answer, usage=...)."
            )
        if answer.state is not None:
            raise AgentError(
                f"{self.agent.name} returned an Outcome with a state on {self.task.id}, and the state is that of the "
                "environment whose tools it calls. Leave it out."
            )
        outcome = settled(answer, self.task, self.agent.name)
        steps = read_steps(outcome.messages, turns=())
        return steps[-1].text if steps else "", outcome


def text_of(skill: Skill) -> str:
    """The skill as an agent gets it: its body; no skill is the empty text."""
    return "" if skill.empty else harmless(skill.body)
