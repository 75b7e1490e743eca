"""The frozen agent, and the places where its rollouts run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import frozen

from wer.contracts.environments import Session
from wer.records import Evidence, Json, JsonObject, Skill, Task, Trajectory, Unit, Usage


class Executor(Protocol):
    """The frozen agent. A skill is the only thing that may change about it."""

    @property
    def identity(self) -> JsonObject:
        """Model, mode and sampling: equal identities give comparable rollouts."""
        ...

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Run one episode to its end. "No skill" is the empty skill.

        Malformed output of the model is data in the trajectory.

        Raises:
            InfrastructureError: The model's or the sandbox's own failure.
        """
        ...


class Runner(Protocol):
    """A place where units of work run: this process, or the nodes of a cluster.

    It knows the run's environments, sandboxes and executor, and nothing of its store: what
    it gives back is judged, charged and stored by the one process that started the run.
    """

    @property
    def concurrency(self) -> int:
        """How many units it can work on at a time."""
        ...

    @property
    def isolation(self) -> str:
        """What isolates the episodes, for reports, as its pools say."""
        ...

    async def start(self) -> None:
        """Get ready; called once, before anything else is asked.

        Raises:
            WerError: The place can't be had, or is not fit for this run, with the remedy.
            InfrastructureError: A part of it did not start, with the cause.
        """
        ...

    async def execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        """Run one unit to its end, in a fresh episode. Cancelled when it takes too long.

        Raises:
            InfrastructureError: The model, the sandbox or the place itself failed; the
                caller may try again, and a place that is gone is not chosen again.
        """
        ...

    async def expect(self, task: Task) -> Json:
        """Make what the verifier compares a task with; see `Environment.expect`."""
        ...

    async def close(self) -> None:
        """End what runs, and leave no process. Safe to call twice, and when `start` failed."""
        ...


@frozen(kw_only=True)
class RunnerSetup:
    """What a runner of another place is made from. All of it but the callables is plain text.

    Attributes:
        config: The run's whole configuration, as `wer.configuration.to_toml` writes it.
        address: Of the cluster, as the user named it; empty when the user named none.
        options: The user's table ``[runner_options]``, still unchecked.
        identity: Of the executor: a place whose executor has another is not the same agent.
        check: Called before a unit is sent out; raises `BudgetExhausted` when a cap is
            reached.
        charge: Told what a role's model calls in another place cost.
        say: Told one line about what the user should know.
        fault: Told the kind and the place of each failure of the infrastructure that another
            place met and tried again itself.
    """

    config: str
    address: str
    options: Mapping[str, Json]
    identity: JsonObject
    check: Callable[[], None]
    charge: Callable[[str, Usage], None]
    say: Callable[[str], None]
    fault: Callable[[str, str], None] = lambda kind, place: None
