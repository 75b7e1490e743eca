"""The runner that every other one leans on: a unit of work in this process, from lease to evidence.

The loop uses it as it is; a machine that works for a run elsewhere opens the same one.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from wer.contracts import Environment, Executor, Model, Pool, Verifier
from wer.records import Evidence, Json, Task, Trajectory, Unit

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
        roles: Models that sessions call, by role.
    """

    environments: Mapping[str, Environment]
    verifiers: Mapping[str, tuple[str, Verifier]]
    pools: Mapping[str, Pool]
    executor: Executor
    roles: Mapping[str, Model] = field(factory=dict)

    def pool(self, task: Task) -> Pool:
        """The warm workers in which a task's episodes run."""
        return self.pools[self.environments[task.env].sandbox(task.domain).id]

    def cast(self, task: Task) -> Mapping[str, Model]:
        """The models that take part in a task's episodes beside the executor's."""
        return {role: self.roles[role] for role in self.environments[task.env].roles()}


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
        """What the pools say, each once."""
        return "; ".join(dict.fromkeys(pool.tier for pool in self.world.pools.values()))

    async def start(self) -> None:
        """Nothing to do: the world is open."""

    async def execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        """Lease an episode, open the task in it, let the executor act, and take the evidence."""
        episode = await self.world.pool(unit.task).lease()
        try:
            environment = self.world.environments[unit.task.env]
            session = await environment.open(unit.task, episode, self.world.cast(unit.task), unit.seed)
            try:
                trajectory = await self.world.executor.execute(unit.task, unit.skill, session, unit.seed)
                return trajectory, await session.evidence()
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
