"""Agents outside of WER's process as frozen executors: programs and endpoints.

What differs between them is how they are asked, their `Way`. The rest is one: the episode's tools
over MCP and the model behind the recording proxy, for agents that call them; an outcome, from
agents that have tools of their own.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from attrs import frozen

from wer.contracts import AgentSetup, Session, Settling
from wer.records import JsonObject, Skill, Task, Trajectory
from wer_agents.assignment import refuse_scripts
from wer_agents.conversation import Ask, Conversation
from wer_agents.loopback import opened
from wer_agents.recording import Record
from wer_agents.resetting import Reset
from wer_agents.upstream import Upstream
from wer_agents.visit import Visit


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
        refuse_scripts(skill, self.way.name)
        self.setup.check()
        await self.reset(task)
        own = isinstance(session, Settling)
        record = Record(skill=skill, own=own, turns=task.turns if own else ())
        visit = Visit(task=task, session=session, record=record)
        async with (
            opened(visit, self.upstream, self.setup) as door,
            self.way.opened(skill, visit.token) as ask,
        ):
            conversation = Conversation(
                name=self.way.name,
                charge=self.setup.charge,
                task=task,
                seed=seed,
                visit=visit,
                door=door,
                ask=ask,
            )
            try:
                return await (
                    conversation.whole(session) if isinstance(session, Settling) else conversation.turns()
                )
            finally:
                conversation.settle()
                await visit.close()
