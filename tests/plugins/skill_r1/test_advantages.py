"""The two levels of credit, by hand."""

import pytest

from wer_skill_r1.advantages import advantages, improvements


def test_a_rollout_is_compared_with_its_generation_and_its_generation_with_the_one_before():
    rewards = [(1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.5)]

    found = advantages(rewards, 0.5)

    assert improvements(rewards) == (0.25, -0.375)
    assert found == (
        (0.75, -0.25, -0.25, -0.25),
        (0.5 + 0.125, 0.5 + 0.125, -0.5 + 0.125, -0.5 + 0.125),
        (-0.125 - 0.1875, -0.125 - 0.1875, -0.125 - 0.1875, 0.375 - 0.1875),
    )


def test_they_agree_with_the_papers_formula_to_float_precision():
    rewards = [(0.3, 0.9, 0.1), (0.7, 0.2, 0.8), (0.6, 0.6, 0.1)]
    weight = 0.7

    found = advantages(rewards, weight)

    for g, row in enumerate(rewards):
        mean = sum(row) / 3
        inter = mean - sum(rewards[g - 1]) / 3 if g else 0.0
        assert found[g] == pytest.approx([r - mean + weight * inter for r in row], rel=1e-14, abs=1e-15)


def test_the_first_generation_has_no_inter_term_whatever_its_weight():
    rewards = [(1.0, 0.5), (0.0, 0.0)]

    assert advantages(rewards, 0.0)[0] == advantages(rewards, 100.0)[0] == (0.25, -0.25)


def test_without_the_inter_term_a_generation_of_equal_rewards_is_worth_nothing():
    assert advantages([(0.0, 0.0), (1.0, 1.0)], 0.0) == ((0.0, 0.0), (0.0, 0.0))
