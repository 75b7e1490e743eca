"""Eq. 4 and its annealing, retention, and assembly."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

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
from wer.retention import assemble, matched_pair, mixedness, retain
from wer.reward import RewardRule, reasoning_score

TASK = Task(id="t", env="e", domain="d", split="train", turns=("go",))
SKILL = Skill(name="a", description="b", body="## Workflow\n1. go")


def rollout(passed: bool, key: str) -> Rollout:
    return Rollout(
        key=key,
        task_id="t",
        skill_id=SKILL.id,
        seed=0,
        trajectory=Trajectory(messages=("go",), steps=(), end=End(by="agent"), seed=0),
        evidence=Evidence(turns=(), end=End(by="agent")),
        verdict=Verdict(score=float(passed), passed=passed),
    )


def experience(*outcomes: bool, well_formed: bool = True, index: int = 0) -> Experience:
    state = RefinementState(task=TASK, skill=SKILL, evidence=(rollout(True, "seed"),), round=3, phase=1)
    candidate = Candidate(
        state_id=state.id, index=index, text="x", reasoning="why", skill=SKILL, well_formed=well_formed
    )
    rollouts = tuple(rollout(passed, f"{index}-{j}") for j, passed in enumerate(outcomes))
    return Experience(
        state=state, candidate=candidate, rollouts=rollouts, reward=Reward(fmt=0, task=0, len=0, total=0)
    )


def test_the_reward_is_the_mean_of_its_three_terms_in_the_first_phase():
    found = experience(True, False)

    reward = RewardRule(reasoning_budget=10).reward(
        found.candidate, [r.verdict for r in found.rollouts], phase=0, phases=3
    )

    assert (reward.fmt, reward.task, reward.len) == (1.0, 0.5, 1.0)
    assert reward.total == pytest.approx((1 + 0.5 + 1) / 3)


def test_the_weight_of_the_format_falls_linearly_over_the_phases():
    rule = RewardRule(fmt_weight_start=1.0, fmt_weight_end=0.2)

    weights = [rule.fmt_weight(phase, 3) for phase in range(3)]

    assert weights == pytest.approx([1.0, 0.6, 0.2])


def test_a_candidate_without_rollouts_has_no_task_reward():
    found = experience()

    reward = RewardRule().reward(found.candidate, [], phase=0, phases=1)

    assert reward.task == 0.0


@given(words=st.integers(0, 100), budget=st.integers(1, 40))
def test_reasoning_is_paid_within_its_budget_and_only_then_in_full(words, budget):
    score = reasoning_score("word " * words, budget)

    assert (score == 1.0) == (1 <= words <= budget)
    assert (score == 0.0) == (words == 0 or words >= 2 * budget)


def test_with_two_rollouts_exactly_the_half_passed_candidates_are_retained():
    all_passed, half, none = experience(True, True), experience(True, False), experience(False, False)

    assert retain([all_passed, half, none]) == (half,)


def test_retention_ignores_the_format():
    badly_formatted = experience(True, False, well_formed=False)

    assert retain([badly_formatted]) == (badly_formatted,)


def test_with_more_rollouts_the_candidates_closest_to_half_come_first():
    quarter = experience(True, False, False, False)
    half = experience(True, True, False, False)

    assert retain([quarter, half]) == (half, quarter)
    assert mixedness(quarter.rollouts) == pytest.approx(0.5)


def test_exactly_half_or_everything_can_be_retained_instead():
    quarter, half = experience(True, False, False, False, index=1), experience(True, False, index=2)
    none = experience(False, False, index=3)

    assert retain([quarter, half, none], "half") == (half,)
    assert retain([quarter, half, none], "all") == (half, quarter, none)


def test_several_executors_are_mixed_each_by_itself():
    one = experience(True, True, False, False)
    apart = [evolve(each, executor=name) for each, name in zip(one.rollouts, "aabb", strict=True)]
    mixed = [evolve(each, executor=name) for each, name in zip(one.rollouts, "abab", strict=True)]

    assert (mixedness(apart), mixedness(mixed)) == (0.0, 1.0)
    assert [rollout.executor for rollout in matched_pair(mixed)] == ["a", "a"]
    assert [rollout.verdict.passed for rollout in matched_pair(apart)] == [False]


def test_assembly_keeps_the_pair_the_skill_and_the_task_and_counts_the_round():
    found = experience(False, True, True)

    state = assemble(found, phase=2)

    assert state.task == TASK and state.skill == SKILL
    assert [r.verdict.passed for r in state.evidence] == [True, False]
    assert (state.round, state.phase, state.parent) == (4, 2, found.candidate.id)


def test_a_pair_of_equal_outcomes_is_one_rollout():
    assert [r.key for r in matched_pair(experience(False, False).rollouts)] == ["0-0"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_verdict_that_is_not_a_share_is_refused(score):
    with pytest.raises(ValueError, match="score must lie in"):
        Verdict(score=score, passed=True)
