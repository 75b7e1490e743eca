"""Which candidates seed the next phase, and the states they become [paper section 3.4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from wer.records import Experience, RefinementState, Rollout

Kept: TypeAlias = Literal["both", "success", "failure"]
"""Which rollouts of a pair are evidence; the paper shows both."""


def mixedness(rollouts: Sequence[Rollout]) -> float:
    """Weight of a candidate for retention: ``1 - |2p - 1|`` with p its share of successes.

    With n = 2 this is 1 for exactly one success and one failure and 0 otherwise, the
    paper's rule; with n > 2 it falls linearly from half to none or all. The verifier's
    outcome alone decides; format does not.
    """
    if not rollouts:
        return 0.0
    share = sum(rollout.verdict.passed for rollout in rollouts) / len(rollouts)
    return 1.0 - abs(2.0 * share - 1.0)


def retain(experiences: Sequence[Experience], *, everything: bool = False) -> tuple[Experience, ...]:
    """Keep the candidates with mixed outcomes, the most mixed first; ties keep their order.

    Args:
        everything: An ablation: keep every candidate that was run.
    """
    kept = [
        experience
        for experience in experiences
        if mixedness(experience.rollouts) > 0.0 or (everything and experience.rollouts)
    ]
    return tuple(sorted(kept, key=lambda experience: -mixedness(experience.rollouts)))


def matched_pair(rollouts: Sequence[Rollout], kept: Kept = "both") -> tuple[Rollout, ...]:
    """Take the first success and the first failure; with one kind only, the first rollout.

    One pair is what the paper assembles; more of them would lengthen the prompt.

    Args:
        kept: An ablation: of a pair only one kind.
    """
    firsts = {rollout.verdict.passed: rollout for rollout in reversed(rollouts)}
    pair = tuple(firsts[passed] for passed in (True, False) if passed in firsts)
    chosen = tuple(
        rollout for rollout in pair if kept == "both" or rollout.verdict.passed == (kept == "success")
    )
    return chosen or pair


def assemble(experience: Experience, *, phase: int, kept: Kept = "both") -> RefinementState:
    """Make the next refinement state by concatenation; nothing is compressed.

    The producing skill becomes the skill in force and the task's own context is kept.

    Args:
        kept: As for `matched_pair`.
    """
    if experience.candidate.skill is None:
        raise ValueError("a candidate without a skill has no rollouts to assemble")
    return RefinementState(
        task=experience.state.task,
        skill=experience.candidate.skill,
        evidence=matched_pair(experience.rollouts, kept),
        parent=experience.candidate.id,
        round=experience.state.round + 1,
        phase=phase,
    )
