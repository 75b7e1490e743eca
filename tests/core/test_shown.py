"""What an optimizer is shown: noise of the verifier in all that it learns from, and in nothing that is measured."""

from __future__ import annotations

import itertools
import json
import math
import sys

import pytest
from attrs import evolve
from support import counting
from support.perform import configured, perform

from wer import folders, hookimpl, plugins
from wer.cli.export import export
from wer.cli.options import Settings
from wer.errors import ConfigError
from wer.records import (
    Candidate,
    End,
    Evidence,
    Experience,
    RefinementState,
    Reward,
    Rollout,
    Skill,
    Task,
    Trajectory,
    Verdict,
)
from wer.reports.learning import learning_tables, seen, survival
from wer.reports.replay import rejudge
from wer.reports.reporting import write_report
from wer.reports.results import results
from wer.retention import mixedness
from wer.shown import Shown

NOISE = 0.3


def passes(rollouts):
    return [rollout.verdict.passed for rollout in rollouts]


@pytest.fixture(scope="module")
def config():
    return configured(training__verifier_noise=NOISE, training__n=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory, config):
    return perform(tmp_path_factory.mktemp("noisy") / "run", config)


def test_the_optimizer_is_paid_by_flipped_verdicts_and_the_store_keeps_the_true_ones(store, config):
    found = [each for _, each in store.experiences() if each.rollouts]

    wrong = 0
    for each in found:
        told = passes(config.shown.rollouts(each.rollouts))
        assert each.reward.task == pytest.approx(sum(told) / len(told))
        wrong += told != passes(each.rollouts)
    assert wrong > 0
    assert all(judged.agrees for judged in rejudge(store, plugins.load(extra=(counting,))))


def test_retention_and_evidence_follow_what_was_shown(store, config):
    kept = {
        each.candidate.id
        for _, each in store.experiences("train/0")
        if mixedness(config.shown.rollouts(each.rollouts)) > 0
    }
    truly = {each.candidate.id for _, each in store.experiences("train/0") if mixedness(each.rollouts) > 0}

    next_states = {each.state.id: each.state for _, each in store.experiences("train/1")}.values()

    assert {state.parent for state in next_states} == kept != truly
    for state in next_states:
        assert passes(config.shown.rollouts(state.evidence)) == [True, False]


def test_the_baselines_of_a_noisy_run_are_those_of_a_run_without_noise(store, tmp_path):
    quiet = perform(tmp_path / "run", configured(training__n=3))

    for condition in ("none", "seed"):
        assert results(store).cell(condition, "average") == results(quiet).cell(condition, "average")


@pytest.mark.parametrize("more", [{}, {"budget__search_rollouts": 20}])
def test_a_resumed_run_sees_the_same_flips(tmp_path, more):
    config = configured(training__verifier_noise=NOISE, **more)
    before = perform(tmp_path / "run", config)
    asked, measured = before.spend(), sorted(before.results())

    after = perform(tmp_path / "run", config)

    assert after.spend() == asked
    assert sorted(after.results()) == measured


@pytest.mark.parametrize("more", [{}, {"budget__search_rollouts": 20}])
def test_under_a_verifier_that_is_always_wrong_the_search_keeps_what_fails(tmp_path, more):
    right = perform(tmp_path / "right", configured(**more))
    wrong = perform(tmp_path / "wrong", configured(training__verifier_noise=1.0, **more))

    def share(store):
        return results(store).cell("refined", "average").mean

    assert share(wrong) < share(right) == 1.0


def test_the_report_says_the_rate_the_flips_and_of_how_many(store, config, tmp_path):
    [found] = seen(store, config)

    report = write_report(tmp_path, store, config).read_text("utf-8")

    assert 0 < found.flipped < found.verdicts
    assert f"verifier noise 0.3: {found.flipped} of {found.verdicts} verdicts were shown" in report
    assert f"| prompted | 0.3 | {found.flipped} of {found.verdicts} |" in report


def test_a_lower_rate_flips_a_part_of_what_a_higher_one_flips():
    keys = [f"key {i}" for i in range(2_000)]
    some, more = ({key for key in keys if Shown(noise=rate).flips(key)} for rate in (0.1, 0.3))

    assert some < more
    assert len(some) / 2_000 == pytest.approx(0.1, abs=0.02)
    assert len(more) / 2_000 == pytest.approx(0.3, abs=0.03)
    assert more != {key for key in keys if Shown(noise=0.3, seed=1).flips(key)}


def test_a_flipped_verdict_has_no_diagnostics_that_would_tell():
    true = experience(0, (False,)).rollouts[0]

    assert true.verdict.diagnostics
    assert Shown(noise=1.0).rollout(true).verdict == Verdict(score=1.0, passed=True)


def experience(index, outcomes):
    """A candidate whose rollouts passed or not."""
    task = Task(id="t", env="e", domain="d", split="train", turns=("go",))
    skill = Skill(body="b")
    state = RefinementState(task=task, skill=skill, evidence=())
    end = End(by="agent")
    rollouts = tuple(
        Rollout(
            key=f"{index} {j}",
            task_id="t",
            skill_id=skill.id,
            seed=j,
            trajectory=Trajectory(messages=("go",), steps=(), end=end, seed=j),
            evidence=Evidence(turns=(), end=end),
            verdict=Verdict(score=float(passed), passed=passed, diagnostics=("why",)),
        )
        for j, passed in enumerate(outcomes)
    )
    candidate = Candidate(
        state_id=state.id, index=index, text="x", reasoning="", skill=skill, well_formed=True
    )
    return Experience(
        state=state, candidate=candidate, rollouts=rollouts, reward=Reward(fmt=0, task=0, len=0, total=0)
    )


@pytest.mark.parametrize(
    ("noise", "n", "passed"), [(0.1, 2, 0), (0.1, 2, 1), (0.3, 4, 1), (0.3, 3, 3), (0.5, 4, 0)]
)
def test_the_share_that_noise_retains_is_the_binomial_one(noise, n, passed):
    candidates = [experience(i, [j < passed for j in range(n)]) for i in range(300)]
    stay, flip = 1 - noise, noise
    all_pass = stay**passed * flip ** (n - passed)
    all_fail = flip**passed * stay ** (n - passed)
    expected = 1 - all_pass - all_fail

    found = survival(candidates, noise, draws=5)

    spread = math.sqrt(expected * (1 - expected) / 1_500)
    assert found.retained == pytest.approx(expected, abs=4 * spread)
    assert found.mixed == float(0 < passed < n)


def test_at_even_odds_retention_is_blind():
    of_each = [experience(i, outcomes) for i, outcomes in enumerate([(True,) * 4, (False,) * 4] * 200)]
    half = [experience(i, (True, False, True, False)) for i in range(400)]
    pairs = [experience(i, (True, False)) for i in range(400)]

    always, mixed, two = (survival(each, 0.5) for each in (of_each, half, pairs))

    assert always.retained == pytest.approx(1 - 2 / 2**4, abs=0.02)
    assert always.retained == pytest.approx(mixed.retained, abs=0.02)
    assert two.labelled == pytest.approx(0.5, abs=0.04)


def test_without_noise_what_is_retained_is_mixed_and_its_labels_are_right():
    every = [experience(i, outcomes) for i, outcomes in enumerate(itertools.product([True, False], repeat=2))]

    found = survival(every, 0.0)

    assert (found.retained, found.mixed, found.labelled) == (0.5, 1.0, 1.0)


class Thinking(counting.Counter):
    """Counts as its skill says, after eight thoughts that are always the same."""

    async def execute(self, task, skill, session, seed):
        found = await super().execute(task, skill, session, seed)
        thoughts = tuple(evolve(found.steps[-1], text=f"thought {i}") for i in range(8))
        return evolve(found, steps=(*thoughts, *found.steps))


@hookimpl
def wer_executors():
    return {"thinking": Thinking}


def test_the_writer_reads_a_pair_from_shortly_before_it_parts_and_the_report_counts_the_words(tmp_path):
    config = configured(agent="thinking", training__evidence_form="divergence")
    store = perform(tmp_path / "run", config, extra=(sys.modules[__name__],))

    [found] = seen(store, config)

    assert found.words["divergence"] < found.words["verbatim"]
    assert f"| {found.words['verbatim']:.0f} | {found.words['divergence']:.0f} |" in "\n".join(
        learning_tables(store, config)
    )


def test_exported_prompts_are_those_that_the_writer_saw(tmp_path, monkeypatch):
    asked = set()

    class Listening(counting.Writer):
        async def complete(self, messages, tools, sampling):
            asked.add(messages[-1].content)
            return await super().complete(messages, tools, sampling)

    monkeypatch.setattr(counting, "Writer", Listening)
    config = configured(
        agent="thinking", training__evidence_form="divergence", training__verifier_noise=NOISE
    )
    perform(tmp_path / "run", config, extra=(sys.modules[__name__],)).close()
    folders.rewrite(tmp_path / "run", config)

    export(str(tmp_path / "run"), form="jsonl", out=tmp_path / "lines.jsonl")

    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text("utf-8").splitlines()]
    prompts = {line["prompt"][1]["content"] for line in lines}
    assert prompts <= asked
    assert any("are left out)" in prompt for prompt in prompts)


def test_a_rate_that_is_no_probability_is_refused():
    with pytest.raises(ConfigError, match=r"verifier_noise must lie in 0..1, got 1.5"):
        configured(training__verifier_noise=1.5)


def test_the_option_sets_the_rate():
    settings = Settings(env=["counting"], executor="scribe/a", verifier_noise=0.2)

    assert settings.resolve().shown.noise == 0.2
