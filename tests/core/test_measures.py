"""Each figure of a step against numbers worked out by hand."""

from __future__ import annotations

import pytest
from attrs import evolve

from wer.measures import MEASURES, OF_GROUPS, OF_SOME, OF_UPDATE, OF_WORK, describe
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
    Usage,
    Verdict,
)
from wer.reward import RewardRule

STATE = RefinementState(
    task=Task(id="t", env="e", domain="d", split="train", turns=("go",)), skill=Skill(body="b"), evidence=()
)


def rollout(passed):
    end = End(by="agent")
    return Rollout(
        key="k",
        task_id="t",
        skill_id="s",
        seed=0,
        trajectory=Trajectory(messages=("go",), steps=(), end=end, seed=0),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(score=float(passed), passed=passed),
    )


def experience(*passes, fmt=1.0, length=1.0, weight=1.0, words=3, tokens=5, prompt=0):
    """A candidate whose rollouts passed or not; without rollouts it has no skill."""
    task = sum(passes) / len(passes) if passes else 0.0
    return Experience(
        state=STATE,
        candidate=Candidate(
            state_id=STATE.id,
            index=0,
            text="x",
            reasoning="",
            skill=Skill(body=" ".join(["word"] * words)) if passes else None,
            well_formed=fmt == 1.0,
            token_ids=tuple(range(tokens)),
            usage=Usage(prompt_tokens=prompt, completion_tokens=tokens),
        ),
        rollouts=tuple(map(rollout, passes)),
        reward=Reward(fmt=fmt, task=task, len=length, total=(weight * fmt + task + length) / 3),
    )


def test_rewards_are_means_of_the_whole_and_of_each_term_before_annealing():
    group = [
        experience(True, fmt=1.0, length=0.5, weight=0.5),
        experience(False, fmt=0.0, length=0.0, weight=0.5),
    ]

    found = describe([group])

    assert found["reward_task"] == pytest.approx(0.5)
    assert found["reward_fmt"] == pytest.approx(0.5)
    assert found["reward_len"] == pytest.approx(0.25)
    assert found["reward"] == pytest.approx((2.0 / 3 + 0.0) / 2)


def test_groups_that_passed_failed_or_earned_the_same_are_shares_of_the_groups():
    groups = [
        [experience(True, True), experience(True, True)],
        [experience(False, False), experience(False, False, length=0.5)],
        [experience(True, False), experience(False, True)],
        [experience(True, True), experience(True, True, length=0.5)],
    ]

    found = describe(groups)

    assert (found["all_pass"], found["all_fail"], found["zero_variance"]) == (0.5, 0.25, 0.5)
    assert found["states"] == 4


def test_a_candidate_without_a_skill_did_not_pass():
    found = describe([[experience(True), experience()]])

    assert (found["all_pass"], found["all_fail"], found["parse_rate"]) == (0.0, 0.0, 0.5)


def test_a_group_without_any_skill_failed():
    found = describe([[experience(), experience()]])

    assert (found["all_fail"], found["parse_rate"], found["skill_words"]) == (1.0, 0.0, 0.0)


def test_the_advantage_belongs_to_the_terms_by_their_covariance_with_the_reward():
    # Terms over 3: task (1, 0)/3, fmt (0, 0), len (0.5, 1)/3; totals (1.5, 1)/3 and deviations (.25, -.25)/3.
    # Covariances, times 9: task .5*.25*2 = .25; len -.25*.25*2 = -.125; the variance is .125.
    found = describe([[experience(True, fmt=0.0, length=0.5), experience(False, fmt=0.0, length=1.0)]])

    assert found["advantage_share_task"] == pytest.approx(2.0)
    assert found["advantage_share_fmt"] == pytest.approx(0.0, abs=1e-12)
    assert found["advantage_share_len"] == pytest.approx(-1.0)


@pytest.mark.parametrize(("scaled", "task", "fmt"), [(False, 0.8, 0.2), (True, 0.5, 0.5)])
def test_scaled_advantages_weigh_each_group_the_same(scaled, task, fmt):
    by_task = [experience(True), experience(False)]  # deviations .5/3 of R_task
    by_format = [
        experience(True, fmt=1.0, weight=0.5),
        experience(True, fmt=0.0, weight=0.5),
    ]  # deviations .25/3 of annealed R_fmt

    found = describe([by_task, by_format], scaled=scaled)

    assert found["advantage_share_task"] == pytest.approx(task)
    assert found["advantage_share_fmt"] == pytest.approx(fmt)
    assert found["advantage_share_len"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("terms", "task", "fmt", "length"),
    [
        (("task",), 1.0, 0.0, 0.0),
        (("task", "len"), 2.0, 0.0, -1.0),  # covariances .25 and -.125 of (1, 0) and (.5, 1) over 2
        (("fmt", "task"), 0.5, 0.5, 0.0),
    ],
)
def test_a_term_that_is_not_paid_has_no_share_and_the_others_share_the_whole(terms, task, fmt, length):
    rule = RewardRule(terms=terms)
    group = [
        rewarded(experience(True, length=0.5), rule, reasoning=450),
        rewarded(experience(False, fmt=0.0), rule, reasoning=300),
    ]

    found = describe([group])

    assert found["advantage_share_task"] == pytest.approx(task)
    assert found["advantage_share_fmt"] == pytest.approx(fmt)
    assert found["advantage_share_len"] == pytest.approx(length)


def rewarded(found, rule, *, reasoning):
    """The same candidate with so many words of reasoning, paid by a rule."""
    candidate = evolve(found.candidate, reasoning="word " * reasoning)
    verdicts = [each.verdict for each in found.rollouts]
    return evolve(found, reward=rule.reward(candidate, verdicts, phase=0, phases=1))


def test_groups_without_variance_have_no_shares():
    found = describe([[experience(True), experience(True)]])

    assert [found[f"advantage_share_{term}"] for term in ("task", "fmt", "len")] == [0.0, 0.0, 0.0]


def test_lengths_are_means_over_candidates_prompts_over_groups_and_words_over_skills():
    groups = [
        [experience(True, words=4, tokens=10, prompt=100), experience(True, words=8, tokens=20)],
        [experience(tokens=30, prompt=300), experience(tokens=0, fmt=0.0)],
    ]

    found = describe(groups)

    assert found["response_tokens"] == 15
    assert found["prompt_tokens"] == 200
    assert found["skill_words"] == 6
    assert found["well_formed"] == 0.75


def test_every_figure_of_groups_is_documented_and_given_even_for_no_groups():
    assert describe([]).keys() == OF_GROUPS.keys()
    assert len(MEASURES) == len(OF_GROUPS) + len(OF_UPDATE) + len(OF_WORK) + len(OF_SOME)
