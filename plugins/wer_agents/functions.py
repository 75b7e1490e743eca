"""Functions as frozen agents: those that call WER's tools once a turn, and those that have tools of their own."""

from __future__ import annotations

import time
from typing import Any

from attrs import frozen

from wer.contracts import AgentSetup, Executor, Session, Settling
from wer.errors import AgentError
from wer.records import UNTOLD, End, JsonObject, Skill, Task, Trajectory, Turn
from wer.tables import structure
from wer.toolbox import Tools
from wer_agents import resetting
from wer_agents.assignment import assignment, refuse_scripts, skill_text
from wer_agents.calling import call
from wer_agents.episode import Episode
from wer_agents.finding import Found, find_agent
from wer_agents.messages import read_steps
from wer_agents.options import Options
from wer_agents.outcomes import read_usage, settled
from wer_agents.recording import Record
from wer_agents.resetting import Reset
from wer_agents.turns import Turns


def function_agent(setup: AgentSetup) -> Executor:
    """Make the executor of a function.

    Raises:
        ConfigError: It can't be found or imported.
        AgentError: It can't be called, or doesn't fit the environment.
    """
    options = structure(Options, setup.options, where="executor_options")
    agent = find_agent(setup.name)
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
    return kind(agent=agent, reset=resetting.find(options.reset), version=options.version, setup=setup)


@frozen(kw_only=True)
class _Function:
    """A user's function as a `wer.contracts.Executor`. Holds no state of a rollout.

    Attributes:
        version: What the user says of all that the code doesn't show.
    """

    agent: Found
    reset: Reset
    version: str
    setup: AgentSetup

    @property
    def identity(self) -> JsonObject:
        """The code, and what the user says of the rest."""
        return {
            "executor": "function",
            "agent": self.agent.name,
            "code": self.agent.code,
            "reset": self.reset.identity,
            "version": self.version,
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
        assert isinstance(session, Settling)  # `function_agent` refuses an environment with tools
        refuse_scripts(skill, self.agent.name)
        await self._prepare(task)
        began = time.monotonic()
        await session.begin()
        given = self.agent.arguments(task=assignment(task), skill=skill_text(skill), seed=seed)
        usage = UNTOLD  # of an agent that fails, too
        try:
            told = await call(f"{self.agent.name} on {task.id}", self.agent.function, **given)
            outcome = settled(told, task, self.agent.name)
            usage = read_usage(outcome.usage)
        finally:
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
        began = time.monotonic()
        episode = Episode(session=session, record=Record(skill=skill, own=False))
        turns = Turns(episode=episode, agent=self.agent, task=task, charge=self.setup.charge)
        tools = Tools(task.tools, turns.caller())
        memory: dict[str, Any] = {}
        here: Turn | End = await episode.begin()
        try:
            while isinstance(here, Turn):
                here = await turns.turn(
                    turn=here.message,
                    skill=skill_text(skill),
                    tools=tools,
                    context=task.context,
                    memory=memory,
                    seed=seed,
                )
        finally:
            usage = turns.settle()
            await episode.close()
        return Trajectory(
            messages=tuple(episode.messages),
            steps=episode.record.steps,
            end=here,
            seed=seed,
            usage=usage,
            wall_s=time.monotonic() - began,
            skill_loaded=turns.skill_loaded,
        )
