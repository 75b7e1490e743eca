"""Which candidates seed the next phase, and the states they become [paper section 3.4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from wer.records import EvidenceForm, Experience, RefinementState, Rollout

Kept: TypeAlias = Literal["both", "success", "failure"]
"""Which rollouts of a pair are evidence; the paper shows both."""

Retention: TypeAlias = Literal["mixed", "half", "all"]
"""Which candidates seed the next phase; with n = 2, mixed is half, the paper's rule."""


def mixedness(rollouts: Sequence[Rollout]) -> float:
    """Weight of a candidate for retention: ``1 - |2p - 1|`` with p its share of successes.

    With n = 2 this is 1 for exactly one success and one failure and 0 otherwise, the
    paper's rule; with n > 2 it falls linearly from half to none or all. The verifier's
    outcome alone decides; format does not. Of several executors it is the mean, each by
    itself: that one always passes and another never is no reason to learn.
    """
    found = _by_executor(rollouts)
    return sum(1.0 - abs(2.0 * _share(each) - 1.0) for each in found) / len(found) if found else 0.0


def retain(experiences: Sequence[Experience], rule: Retention = "mixed") -> tuple[Experience, ...]:
    """Keep the candidates with mixed outcomes, the most mixed first; ties keep their order.

    Args:
        rule: Ablations: only those of which exactly half passed, or every candidate that was run.
    """
    kept = [
        experience
        for experience in experiences
        if experience.rollouts and _worth(mixedness(experience.rollouts), rule)
    ]
    return tuple(sorted(kept, key=lambda experience: -mixedness(experience.rollouts)))


def matched_pair(rollouts: Sequence[Rollout], kept: Kept = "both") -> tuple[Rollout, ...]:
    """Take the first success and the first failure; with one kind only, the first rollout.

    One pair is what the paper assembles; more of them would lengthen the prompt. Both are
    of one executor: of several, the one whose outcomes are most mixed.

    Args:
        kept: An ablation: of a pair only one kind.
    """
    several = _by_executor(rollouts)
    if not several:
        return ()
    one = max(several, key=lambda each: (mixedness(each), -_share(each)))
    firsts = {rollout.verdict.passed: rollout for rollout in reversed(one)}
    pair = tuple(firsts[passed] for passed in (True, False) if passed in firsts)
    chosen = tuple(
        rollout for rollout in pair if kept == "both" or rollout.verdict.passed == (kept == "success")
    )
    return chosen or pair


def assemble(
    experience: Experience, *, phase: int, kept: Kept = "both", form: EvidenceForm = "verbatim"
) -> RefinementState:
    """Make the next refinement state by concatenation; nothing is compressed, unless the form says so.

    The producing skill becomes the skill in force and the task's own context is kept.

    Args:
        kept: As for `matched_pair`.
        form: How the writer reads the evidence.
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
        form=form,
    )


def _worth(mixed: float, rule: Retention) -> bool:
    return rule == "all" or (mixed == 1.0 if rule == "half" else mixed > 0.0)


def _by_executor(rollouts: Sequence[Rollout]) -> Sequence[Sequence[Rollout]]:
    """The rollouts of each executor, in the order in which they come."""
    found: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        found.setdefault(rollout.executor, []).append(rollout)
    return list(found.values())


def _share(rollouts: Sequence[Rollout]) -> float:
    return sum(rollout.verdict.passed for rollout in rollouts) / len(rollouts)
