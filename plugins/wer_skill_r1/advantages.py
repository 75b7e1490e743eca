"""What a generation's rollouts are worth: against each other, and against the generation before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean


def advantages(rewards: Sequence[Sequence[float]], weight: float) -> tuple[tuple[float, ...], ...]:
    """Give ``A(g,i) = A_intra(g,i) + weight * A_inter(g)`` for every rollout of every generation.

    ``A_intra(g,i) = r(g,i) - mean_i r(g,i)`` compares the rollouts of one skill.

    Args:
        rewards: A row a generation, shape ``(G, K)``; rows may differ in length, none is empty.
        weight: The paper's lambda.
    """
    gains = (0.0, *improvements(rewards))
    return tuple(
        tuple(reward - fmean(row) + weight * gain for reward in row)
        for row, gain in zip(rewards, gains, strict=False)
    )


def improvements(rewards: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Give ``A_inter(g) = mean_i r(g,i) - mean_i r(g-1,i)``, shape ``(G - 1,)``: the first generation has none."""
    return tuple(fmean(row) - fmean(before) for before, row in pairwise(rewards))
