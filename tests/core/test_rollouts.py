"""The scheduler: retried elsewhere, never scored, never twice, and stopped when it takes too long."""

from __future__ import annotations

import asyncio

import pytest
from attrs import evolve
from support.counting import Counter, Counting, MemoryPool, Reached
from support.scripted_user import ScriptedUser

from wer.errors import InfrastructureError, ModelError, SandboxError, VerifierError
from wer.loop.ledger import Budget, Ledger
from wer.loop.local import LocalRunner, World
from wer.loop.rollouts import Limits, Scheduler, seeds_of
from wer.records import NO_SKILL, Skill, Unit, Verdict
from wer.store import Store

TASK = Counting().tasks("small", "train")[0]
SKILL = Skill(name="up", description="d", body="## Workflow\n1. count up")


@pytest.fixture
def make(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)

    def made(*, dying=0, verifier=None, executor=None, retries=3, timeout_s=5.0):
        environment = Counting()
        world = World(
            environments={"counting": environment},
            verifiers={"counting": ("reached", verifier or Reached())},
            pools={environment.sandbox("small").id: MemoryPool(dying)},
            executor=executor or Counter(None, {}),
        )
        return Scheduler(
            world=world,
            store=store,
            ledger=Ledger(Budget(), store),
            limits=Limits(rollout_timeout_s=timeout_s, retries=retries),
            gate=asyncio.Semaphore(4),
            on_finished=lambda rollout, cached: None,
            say=lambda line: None,
        )

    return made


async def test_equal_units_are_one_rollout(make):
    executor = Counter(None, {})
    unit = Unit(task=TASK, skill=SKILL, seed=1)

    first, second = await make(executor=executor).run([unit, unit])

    assert first == second
    assert len(executor.runs) == 1


async def test_a_stored_rollout_is_not_run_again(make):
    executor = Counter(None, {})
    unit = Unit(task=TASK, skill=SKILL, seed=1)
    await make().run([unit])

    await make(executor=executor).run([unit])

    assert executor.runs == []


async def test_a_sandbox_that_stays_dead_ends_the_run_with_its_last_words(make):
    with pytest.raises(SandboxError, match="killed by a test"):
        await make(dying=99, retries=1).run([Unit(task=TASK, skill=SKILL, seed=1)])


async def test_a_dead_sandbox_is_not_stored_as_a_failure(make):
    scheduler = make(dying=99, retries=1)

    with pytest.raises(SandboxError):
        await scheduler.run([Unit(task=TASK, skill=SKILL, seed=1)])

    assert scheduler.store.count_rollouts() == 0


class Refusing(Counter):
    async def execute(self, task, skill, session, seed):
        self.runs.append((task.id, skill.id, seed))
        raise ModelError("401: bad key")


async def test_a_models_refusal_for_good_is_not_tried_again(make):
    executor = Refusing(None, {})

    with pytest.raises(ModelError, match="401"):
        await make(executor=executor).run([Unit(task=TASK, skill=SKILL, seed=1)])

    assert len(executor.runs) == 1


class Sleeping(Counter):
    async def execute(self, task, skill, session, seed):
        await asyncio.sleep(60)


async def test_a_rollout_that_takes_too_long_is_an_infrastructure_failure_with_a_remedy(make):
    with pytest.raises(InfrastructureError, match=r"more than 0.05 s. Raise limits.rollout_timeout_s"):
        await make(executor=Sleeping(None, {}), timeout_s=0.05, retries=0).run(
            [Unit(task=TASK, skill=SKILL, seed=1)]
        )


class Says:
    def __init__(self, answer):
        self.answer = answer

    def judge(self, task, trajectory, evidence, expect):
        return self.answer()


@pytest.mark.parametrize(
    "answer", [lambda: Verdict(score=float("nan"), passed=True), lambda: 1 / 0, lambda: None, lambda: True]
)
async def test_a_verifier_that_gives_no_verdict_stops_the_run_by_name(make, answer):
    with pytest.raises(VerifierError, match="verifier 'reached'"):
        await make(verifier=Says(answer)).run([Unit(task=TASK, skill=SKILL, seed=1)])


def test_seeds_are_shared_by_all_skills_and_differ_between_tasks_and_splits():
    other = evolve(TASK, id="counting/other")

    assert seeds_of(TASK, 3, run_seed=0, purpose="test") == seeds_of(TASK, 3, run_seed=0, purpose="test")
    assert set(seeds_of(TASK, 3, run_seed=0, purpose="test")).isdisjoint(
        [
            *seeds_of(TASK, 3, run_seed=0, purpose="train"),
            *seeds_of(other, 3, run_seed=0, purpose="test"),
        ]
    )


async def test_no_skill_is_the_empty_skill(make):
    (rollout,) = await make().run([Unit(task=TASK, skill=NO_SKILL, seed=1)])

    assert rollout.skill_id == NO_SKILL.id
    assert not rollout.verdict.passed


async def test_another_simulated_user_is_another_rollout(make):
    class Open(Counting):
        def roles(self):
            return ("user",)

    executor = Counter(None, {})
    unit = Unit(task=TASK, skill=SKILL, seed=1)
    scheduler = make(executor=executor)
    for name in ("a", "b", "a"):
        world = evolve(scheduler.world, environments={"counting": Open()}, roles={"user": NamedUser(name)})
        await evolve(scheduler, world=world, runner=LocalRunner(world=world)).run([unit])

    assert len(executor.runs) == 2


class NamedUser(ScriptedUser):
    def __init__(self, name):
        super().__init__("Hello.")
        self._name = name

    @property
    def identity(self):
        return {"provider": "scripted", "name": self._name}
