"""The runner that every other one leans on: a unit of work in this process, from lease to evidence.

The loop uses it as it is; a machine that works for a run elsewhere opens the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from wer.contracts import Environment, Executor, Model, Pool, Session, Settling, Verifier
from wer.errors import VerifierError
from wer.records import Evidence, Json, JsonObject, Skill, Task, Trajectory, Unit, Verdict
from wer.scripts import SCRIPTS, equipped, try_script
from wer.tracing import span

LOCAL = "local"
"""Its name in the configuration; no plugin offers it."""


@frozen(kw_only=True)
class World:
    """The parts that a rollout needs, opened once a run.

    Attributes:
        environments: By name, as in `Task.env`.
        verifiers: The verifier's name and itself, by environment; empty where nothing
            is judged.
        pools: By sandbox spec id.
        executors: Of a run with several, each by its specification, the first one included.
        roles: Models that sessions call, by role.
    """

    environments: Mapping[str, Environment]
    verifiers: Mapping[str, tuple[str, Verifier]]
    pools: Mapping[str, Pool]
    executor: Executor
    executors: Mapping[str, Executor] = field(factory=dict)
    roles: Mapping[str, Model] = field(factory=dict)

    @property
    def identity(self) -> JsonObject:
        """What decides how an agent acts, of all executors: equal on every machine of a run."""
        if not self.executors:
            return self.executor.identity
        return {name: dict(executor.identity) for name, executor in self.executors.items()}

    def acting(self, unit: Unit) -> Executor:
        """The executor of a unit."""
        return self.executors[unit.executor] if unit.executor else self.executor

    def pool(self, task: Task) -> Pool:
        """The warm workers in which a task's episodes run."""
        return self.pools[self.environments[task.env].sandbox(task.domain).id]

    def cast(self, task: Task) -> Mapping[str, Model]:
        """The models that take part in a task's episodes beside the executor's."""
        return {role: self.roles[role] for role in self.environments[task.env].roles()}

    def equipped(self, unit: Unit, session: Session) -> tuple[Task, Skill, Session]:
        """What the executor is given: as it is, or with the skill's scripts as further tools.

        Raises:
            SkillError: A script can't be offered to an agent.
        """
        if not unit.skill.scripts or isinstance(session, Settling):
            return unit.task, unit.skill, session
        return equipped(unit.task, unit.skill, session, self.pools[SCRIPTS.id])

    async def try_script(self, name: str, source: str, tests: str) -> str:
        """Run a helper script's tests; see `wer.contracts.OptimizerSetup`."""
        return await try_script(self.pools[SCRIPTS.id], name, source, tests)

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Ask the verifier; what isn't a verdict is an error that names it.

        Raises:
            VerifierError: It raised, or its score is not finite or not in 0..1.
        """
        name, verifier = self.verifiers[task.env]
        try:
            verdict: Any = verifier.judge(task, trajectory, evidence, expect)
        except VerifierError:
            raise
        except Exception as error:
            raise VerifierError(
                f"verifier {name!r} failed on {task.id}: {type(error).__name__}: {error}. A verdict must "
                "come from the stored data alone; mend the verifier and go on with --resume."
            ) from error
        if not isinstance(verdict, Verdict):
            raise VerifierError(
                f"verifier {name!r} answered {verdict!r} on {task.id}; a wer Verdict was expected"
            )
        return verdict


@frozen(kw_only=True)
class LocalRunner:
    """A `wer.contracts.Runner` over an open world, which belongs to whoever opened it.

    Attributes:
        concurrency: How many units at a time help the executor's model.
    """

    world: World
    concurrency: int = field(default=1)

    @property
    def isolation(self) -> str:
        """What the environments' pools say, each once; that of the scripts is of the same kind."""
        tiers = (pool.tier for spec, pool in self.world.pools.items() if spec != SCRIPTS.id)
        return "; ".join(dict.fromkeys(tiers))

    async def start(self) -> None:
        """Nothing to do: the world is open."""

    async def execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        """Lease an episode, open the task in it, let the executor act, and take the evidence."""
        with span("lease", task=unit.task.id, attempt=unit.attempt):
            episode = await self.world.pool(unit.task).lease()
        try:
            environment = self.world.environments[unit.task.env]
            session = await environment.open(unit.task, episode, self.world.cast(unit.task), unit.seed)
            try:
                task, skill, met = self.world.equipped(unit, session)
                trajectory = await self.world.acting(unit).execute(task, skill, met, unit.seed)
                return trajectory, await met.evidence()
            finally:
                await session.close()
        finally:
            await episode.close()

    async def expect(self, task: Task) -> Json:
        """What the verifier compares a task with, made in a fresh episode."""
        episode = await self.world.pool(task).lease()
        try:
            return await self.world.environments[task.env].expect(task, episode)
        finally:
            await episode.close()

    async def close(self) -> None:
        """Nothing to do: whoever opened the world closes it."""
