"""Several frozen agents in one run: the same seeds for each, one pair of one of them, and Pass@1 of each and of all."""

from __future__ import annotations

import sys

import pytest
from support import counting
from support.perform import configured, perform

from wer import hookimpl, plugins
from wer.cli.options import Settings
from wer.display import Display
from wer.errors import ConfigError
from wer.loop.domains import domains, environments
from wer.records import NO_SKILL
from wer.reports.executors import by_executor, sentences
from wer.reports.forecast import forecast
from wer.reports.reporting import write_report
from wer.reports.results import results

BOTH = ("scribe/a", "dull/b")


class Dull(counting.Writer):
    """A model that an agent can be around, and that is told apart from the other."""

    @property
    def identity(self):
        return {"provider": "dull"}


class Either(counting.Counter):
    """Reads its skill with one model, and never with the other."""

    def __init__(self, model, options):
        super().__init__(model, options)
        self._dull = model.identity["provider"] == "dull"

    async def execute(self, task, skill, session, seed):
        return await super().execute(task, NO_SKILL if self._dull else skill, session, seed)


@hookimpl
def wer_executors():
    return {"either": Either}


@hookimpl
def wer_models():
    return {"dull": lambda setup: Dull(setup.name)}


def config(**more):
    return configured(agent="either", more_executors=["dull/b"], **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("several") / "run"


@pytest.fixture(scope="module")
def store(folder):
    return perform(folder, config(), extra=(sys.modules[__name__],))


def test_every_candidate_has_its_rollouts_with_each_executor_on_the_same_seeds(store):
    ran = [found.rollouts for _, found in store.experiences() if found.rollouts]

    assert ran
    for rollouts in ran:
        seeds = {name: [each.seed for each in rollouts if each.executor == name] for name in BOTH}
        assert len(rollouts) == 4 and seeds["scribe/a"] == seeds["dull/b"]


def test_a_candidate_is_paid_the_mean_over_the_executors(store):
    for _, found in store.experiences():
        able = [each.verdict.score for each in found.rollouts if each.executor == "scribe/a"]
        assert found.reward.task == pytest.approx(sum(able) / 4)


def test_evidence_is_of_one_executor_and_the_most_mixed_one(store):
    states = {found.state.id: found.state for _, found in store.experiences()}.values()

    of_one = [{rollout.executor for rollout in state.evidence} for state in states]
    pairs = [state.evidence for state in states if len(state.evidence) == 2]
    assert all(len(executors) == 1 for executors in of_one)
    assert pairs
    assert {pair[0].executor for pair in pairs} == {"scribe/a"}


def test_what_one_always_and_the_other_never_passes_is_not_retained(store):
    first = {
        found.candidate.id: [each.verdict.passed for each in found.rollouts]
        for _, found in store.experiences("train/0")
    }
    kept = {found.state.parent for _, found in store.experiences("train/1")}

    assert kept == {key for key, passed in first.items() if passed[:2] in ([True, False], [False, True])}


def test_pass_at_1_is_told_for_each_executor_and_for_all(store):
    heading, *rows = by_executor(store)

    cells = {row[0]: row[1:] for row in rows}
    assert heading == ["condition", *BOTH, "all executors"]
    assert "agent that does nothing" not in cells
    assert cells["refined skill"][1].startswith("0.0")
    each = [results(store, executor=name).cell("refined", "average") for name in BOTH]
    overall = results(store).cell("refined", "average")
    assert overall.mean == pytest.approx((each[0].mean + each[1].mean) / 2)
    assert (each[0].trials, overall.trials) == (16, 32)


def test_the_report_names_every_executor(store, folder):
    report = write_report(folder, store, config()).read_text("utf-8")

    assert "executor `scribe/a, dull/b`" in report
    for line in sentences(store):
        assert f"- {line}" in report


def test_a_second_run_pays_for_nothing_again(store, folder):
    before = store.count_rollouts()

    assert perform(folder, config(), extra=(sys.modules[__name__],)).count_rollouts() == before


def test_a_run_with_one_executor_says_nothing_of_several(tmp_path):
    alone = perform(tmp_path / "run", configured())

    assert by_executor(alone) == []
    assert {rollout.executor for rollout, _, _ in alone.rollouts()} == {""}


def test_the_forecast_counts_every_executor():
    found = plugins.load(extra=(counting, sys.modules[__name__]))

    def ahead(each):
        return forecast(each, domains(each, environments(each, found), test_limit=0), found)

    one, both = ahead(configured(agent="either")), ahead(config())
    idle = dict(one.rollouts)["test split, the agent that does nothing"]
    assert both.total - idle == 2 * (one.total - idle)
    acting = {role.model: role.calls for role in both.roles if role.role == "executor"}
    assert acting == dict.fromkeys(BOTH, next(role.calls for role in one.roles if role.role == "executor"))


def test_an_executor_that_is_named_twice_is_refused():
    with pytest.raises(ConfigError, match="more_executors names 'scribe/a'"):
        configured(more_executors=["scribe/a"])


def test_the_option_lists_further_executors():
    settings = Settings(env=["counting"], executor="scribe/a", more_executors="dull/b,dull/c")

    assert settings.resolve().executors == ("scribe/a", "dull/b", "dull/c")


def test_progress_expects_the_rollouts_of_every_executor(tmp_path, monkeypatch):
    counts = []
    begin, count = Display.stage, Display.rollout

    def stage(self, name, total, **more):
        counts.append([name, total, 0])
        begin(self, name, total, **more)

    def rollout(self, *found, **more):
        counts[-1][2] += 1
        count(self, *found, **more)

    monkeypatch.setattr(Display, "stage", stage)
    monkeypatch.setattr(Display, "rollout", rollout)

    perform(tmp_path / "run", config(), extra=(sys.modules[__name__],))

    kinds = [(name, total, done) for name, total, done in counts if done]
    assert any(name.startswith("phase") for name, _, _ in kinds)
    assert all(total == done for _, total, done in kinds), kinds
