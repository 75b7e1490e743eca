"""What a cluster's worker answers, in this process and without a cluster."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from attrs import evolve
from support import counting
from support.perform import configured

from wer import errors, hookimpl, plugins
from wer.codec import from_json, to_json
from wer.configuration import to_toml
from wer.errors import InfrastructureError, ModelUnavailable, SandboxError, WerError
from wer.records import NO_SKILL, Evidence, Message, Sampling, Trajectory, Unit
from wer_ray import worker as worker_module
from wer_ray.answers import error_of, failure_of, read
from wer_ray.worker import Worker

UNIT = Unit(task=counting.Counting().tasks("small", "train")[0], skill=NO_SKILL, seed=1)


@pytest.fixture
async def worker(monkeypatch):
    found = plugins.load(extra=(counting,))
    monkeypatch.setattr(worker_module.plugins, "load", lambda: found)
    worker = Worker()
    await worker.open(to_toml(configured(sandbox="dying")), {})
    yield worker
    await worker.close()


async def test_a_unit_comes_back_as_a_trajectory_and_its_evidence(worker):
    await worker.execute(to_json(UNIT))  # the sandbox dies at its first two leases
    await worker.execute(to_json(UNIT))

    answer = read(await worker.execute(to_json(UNIT)))

    assert answer.failure is None
    assert from_json(answer.result["trajectory"], Trajectory).seed == 1
    assert from_json(answer.result["evidence"], Evidence).turns[-1].state == 1


async def test_a_sandbox_that_dies_is_a_failure_as_data_with_its_last_words(worker):
    answer = read(await worker.execute(to_json(UNIT)))

    assert answer.failure.kind == "SandboxError"
    assert (answer.failure.cause, answer.failure.stderr_tail) == ("dead", "killed by a test")


async def test_a_worker_that_was_never_opened_says_so():
    answer = read(await Worker().execute(to_json(UNIT)))

    assert "before it was open" in answer.failure.message


async def test_what_a_verifier_compares_with_comes_back_as_it_was_made(worker):
    for _ in range(2):
        await worker.expect(to_json(UNIT.task))

    answer = read(await worker.expect(to_json(UNIT.task)))

    assert json.loads(answer.result["expect"]) == UNIT.task.setup["goal"]


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WerError)],
)
def test_every_error_of_wer_is_the_same_error_on_the_other_side(kind):
    error = kind("it broke", cause="dead") if kind is SandboxError else kind("it broke")

    again = error_of(failure_of(error), place="10.0.0.2")

    assert type(again) is kind
    assert str(again) == "it broke (on 10.0.0.2)"


def test_a_servers_wish_to_wait_arrives():
    again = error_of(failure_of(ModelUnavailable("429", retry_after_s=7.0)), place="here")

    assert again.retry_after_s == 7.0


class Own(InfrastructureError):
    """A plugin's own kind of failure."""


def test_a_plugins_own_infrastructure_error_is_tried_again_like_any_other():
    assert type(error_of(failure_of(Own("no")), place="here")) is InfrastructureError


def test_a_fault_that_nobody_foresaw_arrives_with_its_trace():
    try:
        {}["missing"]
    except KeyError as error:
        again = error_of(failure_of(error), place="10.0.0.2")

    assert type(again) is RuntimeError
    assert "KeyError: 'missing' (on 10.0.0.2)" in str(again)
    assert "test_ray_worker.py" in str(again)


def test_an_answer_that_is_none_is_the_infrastructures_fault():
    with pytest.raises(InfrastructureError, match="answered with something else"):
        read("<html>")


class Asking(counting.Counting):
    """The counting world with a user that is a model, asked once as the episode opens."""

    def roles(self):
        return ("user",)

    async def open(self, task, episode, roles, seed):
        await roles["user"].complete((Message(role="user", content="Who are you?"),), (), Sampling())
        return await super().open(task, episode, roles, seed)


async def test_a_worker_asks_the_user_and_its_answer_says_what_that_cost(monkeypatch):
    module = ModuleType("asking")
    module.wer_environments = hookimpl(lambda: {"asking": lambda options: Asking()})
    found = plugins.load(extra=(counting, module))
    monkeypatch.setattr(worker_module.plugins, "load", lambda: found)
    worker = Worker()
    await worker.open(to_toml(configured(env=["asking"], user_model="scribe/u")), {})

    answer = read(await worker.execute(to_json(evolve(UNIT, task=evolve(UNIT.task, env="asking")))))
    await worker.close()

    assert answer.failure is None
    assert answer.spent["user"].calls == 1
