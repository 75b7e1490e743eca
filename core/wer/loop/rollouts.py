"""The one scheduler: units of work for a runner, with a limit, retries and a cache.

A unit is plain data (task, skill, seed), so that the runner may be another machine; what it
gives back is judged and stored here, and nowhere else. A rollout that the infrastructure
broke is tried again and never scored; one that can't be had after all tries ends the run
with the cause, resumably.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from attrs import Factory, evolve, field, frozen

from wer.contracts import Executor, Runner
from wer.errors import InfrastructureError, ModelError, ModelUnavailable
from wer.loop.ledger import Ledger
from wer.loop.local import LocalRunner, World
from wer.loop.retrying import patiently
from wer.records import (
    Evidence,
    Json,
    Rollout,
    Skill,
    Task,
    Trajectory,
    Unit,
    content_hash,
    derive_seed,
)
from wer.store import Store
from wer.tracing import span

ROLLOUTS = "rollouts"
"""Where a fault was met that is no model's."""


@frozen(kw_only=True)
class Limits:
    """When a rollout counts as hung, and how often it is tried again.

    Attributes:
        rollout_timeout_s: Seconds from lease to evidence.
        retries: Tries after the first.
    """

    rollout_timeout_s: float = 600.0
    retries: int = 3


def seeds_of(task: Task, n: int, *, run_seed: int, purpose: str) -> tuple[int, ...]:
    """The seeds of a task's rollouts: the same whatever the skill, so that comparisons are paired."""
    return tuple(derive_seed(run_seed, purpose, task.key, j) for j in range(n))


@frozen(kw_only=True)
class Scheduler:
    """Runs units concurrently, each at most once, and stores every one as it ends.

    Attributes:
        gate: Limits the rollouts in flight, whoever asks for them.
        on_finished: Told each rollout and whether it came from the store.
        say: Told one line when something is tried again.
        runner: Where units run; by default here, in `world`.
    """

    world: World
    store: Store
    ledger: Ledger
    limits: Limits
    gate: asyncio.Semaphore
    on_finished: Callable[[Rollout, bool], None]
    say: Callable[[str], None]
    runner: Runner = field(default=Factory(lambda self: LocalRunner(world=self.world), takes_self=True))
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(factory=WeakValueDictionary, init=False)
    _flying: set[asyncio.Future[None]] = field(factory=set, init=False)
    _failures: list[Exception] = field(factory=list, init=False)
    _expecting: dict[str, asyncio.Lock] = field(factory=dict, init=False)

    def around(self, executor: Executor) -> Scheduler:
        """The same scheduler around another agent. Its units run here, wherever the others do."""
        world = evolve(self.world, executor=executor)
        return evolve(self, world=world, runner=LocalRunner(world=world))

    def units(self, task: Task, skill: Skill, seeds: Sequence[int]) -> list[Unit]:
        """A unit a seed, with every executor of the run: all act on the same seeds, and are paired by them."""
        return [
            Unit(task=task, skill=skill, seed=seed, executor=name)
            for name in self.world.executors or ("",)
            for seed in seeds
        ]

    async def run(self, units: Sequence[Unit]) -> tuple[Rollout, ...]:
        """Have all units, in their order; equal units are one rollout.

        After a failure nothing new begins, and what is in flight, and partly paid for,
        ends and is stored before the failure is raised.

        Raises:
            BudgetExhausted: Finished rollouts are stored.
            InfrastructureError: A rollout failed in every try.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(unit)) for unit in units]
        rollouts = [task.result() for task in tasks]
        finished = tuple(rollout for rollout in rollouts if rollout is not None)
        if len(finished) < len(rollouts):
            while self._flying:  # also those of other calls, whose caller may cancel them on our failure
                await asyncio.wait(set(self._flying))
            raise self._failures[0]
        return finished

    def reopen(self) -> None:
        """Begin rollouts again, after a failure that ended a stage and not the run."""
        self._failures.clear()

    def stored(self, unit: Unit) -> Rollout | None:
        """A unit's rollout, if it was had before."""
        return self.store.rollout(self._key(unit))

    async def _one(self, unit: Unit) -> Rollout | None:
        """Have one unit; None when it failed, or was not begun because another had failed."""
        key = self._key(unit)
        async with self._locks.setdefault(key, asyncio.Lock()):
            try:
                return await self._have(unit, key)
            except Exception as error:  # whatever it is, it is raised once the others have ended
                self._failures.append(_cause(error))
                return None

    def _key(self, unit: Unit) -> str:
        verifier, _ = self.world.verifiers[unit.task.env]
        identity = self.world.acting(unit).identity
        cast = {role: dict(model.identity) for role, model in self.world.cast(unit.task).items()}
        parts = [unit.task.key, unit.skill.id, identity, verifier, unit.seed]
        return content_hash([*parts, *filter(None, (unit.executor, cast))])

    async def _have(self, unit: Unit, key: str) -> Rollout | None:
        stored = self.store.rollout(key)
        if stored is not None:
            self.on_finished(stored, True)
            return stored
        async with self.gate:
            if self._failures:
                return None
            self.ledger.begin_rollout()
            landed = asyncio.get_running_loop().create_future()
            self._flying.add(landed)
            try:
                return await self._fly(unit, key)
            except BaseException:
                self.ledger.abandon_rollout()
                raise
            finally:
                self._flying.discard(landed)
                landed.set_result(None)

    async def _fly(self, unit: Unit, key: str) -> Rollout:
        task = unit.task
        with span("rollout", task=task.id, domain=task.domain, skill=unit.skill.id, seed=unit.seed) as tell:
            rollout, tries = await self._try(unit, key)
            tell(tries=tries, passed=rollout.verdict.passed, score=rollout.verdict.score)
        name, _ = self.world.verifiers[unit.task.env]
        self.store.put_rollout(rollout, task=unit.task, skill=unit.skill, verifier=name, tries=tries)
        self.on_finished(rollout, False)
        return rollout

    async def _try(self, unit: Unit, key: str) -> tuple[Rollout, int]:
        async def once(number: int) -> tuple[Json, Trajectory, Evidence, int]:
            expect = await _mended(self._expect(unit.task))
            trajectory, evidence = await _mended(self._execute(evolve(unit, attempt=number)))
            return expect, trajectory, evidence, number

        expect, trajectory, evidence, tries = await patiently(
            _Again, once, retries=self.limits.retries, tell=self.say, count=self._count
        )
        verdict = self.world.judge(unit.task, trajectory, evidence, expect)
        rollout = Rollout(
            key=key,
            task_id=unit.task.id,
            skill_id=unit.skill.id,
            seed=unit.seed,
            trajectory=trajectory,
            evidence=evidence,
            verdict=verdict,
            executor=unit.executor,
        )
        return rollout, tries

    def _count(self, again: _Again) -> None:
        """Count what broke; a model's failures were counted where it was asked."""
        error = again.__cause__
        if isinstance(error, InfrastructureError) and not isinstance(error, ModelError):
            self.ledger.fault(error.kind, ROLLOUTS)

    async def _execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        try:
            async with asyncio.timeout(self.limits.rollout_timeout_s):
                return await self.runner.execute(unit)
        except TimeoutError as error:
            limit = self.limits.rollout_timeout_s
            raise RolloutTimeout(
                f"a rollout of {unit.task.id} took more than {limit:g} s. Raise limits.rollout_timeout_s, "
                "or lower the concurrency."
            ) from error

    async def expectation(self, task: Task) -> Json:
        """What the verifier compares a task with: stored, or made now in a fresh episode."""
        return await self._expect(task)

    async def _expect(self, task: Task) -> Json:
        async with self._expecting.setdefault(task.key, asyncio.Lock()):
            stored = self.store.expect(task.key)
            if stored is not None:
                return stored[0]
            expect = await self.runner.expect(task)
            self.store.put_task(task)
            self.store.put_expect(task, expect)
            return expect


class RolloutTimeout(InfrastructureError):
    """A rollout did not end in its time."""

    kind = "rollout time-out"


class _Again(InfrastructureError):
    """A failure that another try may mend."""


async def _mended(work: Any) -> Any:
    """Await; mark what is worth another try. A model's refusal for good is not."""
    try:
        return await work
    except ModelError as error:
        if isinstance(error, ModelUnavailable):
            raise _Again(str(error)) from error
        raise
    except InfrastructureError as error:
        raise _Again(str(error)) from error


def _cause(error: Exception) -> Exception:
    """What made the last of several tries fail."""
    return error.__cause__ if isinstance(error, _Again) and isinstance(error.__cause__, Exception) else error
