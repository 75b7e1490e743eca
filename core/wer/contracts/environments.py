"""A family of tasks, an episode as the agent meets it, and the code that judges how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from wer.contracts.models import Model
from wer.contracts.sandboxes import Episode
from wer.records import (
    Answer,
    End,
    Evidence,
    Json,
    SandboxSpec,
    Split,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
)


class Session(Protocol):
    """One episode as the agent meets it.

    Between two of the agent's moves a user that is a model may act too, with tools of its own;
    the session asks that model and runs those tools, and leaves them in the evidence.
    """

    async def begin(self) -> Turn | End:
        """Put the world in place and give the first user message; or the end, if the user never asks."""
        ...

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one step's calls in order.

        Unknown tools, wrong arguments and exceptions of a tool are observations.

        Raises:
            SandboxError: The sandbox broke; the rollout has no verdict.
        """
        ...

    async def say(self, text: str) -> Turn | End:
        """End the agent's turn with a message to the user (may be empty)."""
        ...

    async def evidence(self) -> Evidence:
        """Export what a verifier needs. Called once: after the end, or when the agent has left.

        An agent that left without an end ended the episode: ``End(by="agent", why="stopped")``.
        """
        ...

    async def close(self) -> None:
        """Free the episode. Safe to call twice."""
        ...


Roles: TypeAlias = Mapping[str, "Model"]
"""Metered models by the role that they play in an episode; ``user`` is the simulated user."""


class Environment(Protocol):
    """A family of tasks in a sandbox."""

    def domains(self) -> Sequence[str]:
        """Names of the domains, in the order of reports."""
        ...

    def verifier(self) -> str:
        """Name of the verifier that judges by default."""
        ...

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The tasks of a domain. Ids are stable, splits are disjoint.

        Raises:
            TaskError: The data is missing or malformed.
        """
        ...

    def sandbox(self, domain: str) -> SandboxSpec:
        """The sandbox that the domain runs in; equal specs share one pool."""
        ...

    def roles(self) -> Sequence[str]:
        """Which models, beside the executor's, its sessions call on the host: ``("user",)``, or none.

        The loop refuses a run whose configuration names no model for one of them, before
        anything is paid; each has a line of its own in the forecast and the costs.
        """
        ...

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin one rollout in a fresh episode.

        Args:
            roles: At least the models that `roles` names.
            seed: Of every die that the episode rolls, a simulated user's included.
        """
        ...

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the verifier compares with, made once a task in a fresh episode and stored.

        Never shown to an executor.
        """
        ...


@runtime_checkable
class Referenced(Protocol):
    """An environment that knows how its tasks are solved."""

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """Calls that solve a task, a list a turn; None where there are none that an agent alone can make.

        For audits, and for optimizers that compare with a success. Never shown to an executor.
        """
        ...


@runtime_checkable
class Identified(Protocol):
    """An environment that users edit between runs, such as a `wer.Domain`."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Content hashes by what they are of: ``tasks``, ``check``. A run goes on with equal ones only."""
        ...


class Verifier(Protocol):
    """Code that says pass or fail, from stored data alone."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Judge one rollout. Pure: no clock, no network, no model, no state of its own.

        Raises:
            VerifierError: The data can't be judged; the run stops rather than guess.
        """
        ...
