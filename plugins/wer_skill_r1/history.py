"""The history H that a skill is written from: every generation's skill, rollouts and rewards, verbatim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean

from wer.contracts import Notes
from wer.records import Rollout, Skill
from wer.skills import render_document
from wer.writing import evidence_block


def generation(number: int, skill: Skill | None, rollouts: Sequence[Rollout], *, problem: str = "") -> str:
    """Write one generation as a block of later prompts; nothing is cut.

    Args:
        number: 0 is the skill that the task came with.
        skill: None when the writer's answer held none, and the problem is why.
    """
    name = f"Generation {number}"
    if skill is None:
        return f"# {name}: reward 0\n(no skill could be read: {problem})"
    scores = rewards(rollouts)
    earned = f"rewards {', '.join(f'{score:g}' for score in scores)}; mean {fmean(scores):.4g}"
    document = "(none: the agent had no skill)" if skill.empty else render_document(skill)
    return "\n\n".join(
        [
            f"# {name}: {earned if rollouts else 'not run yet'}\n{document}",
            *(
                evidence_block(f"{name}, {'success' if rollout.verdict.passed else 'failure'}", rollout)
                for rollout in rollouts
            ),
        ]
    )


def rewards(rollouts: Sequence[Rollout]) -> tuple[float, ...]:
    """Give r(g,i), the verifier's scores; one 0 for an answer without a skill, which no rollout could use."""
    return tuple(rollout.verdict.score for rollout in rollouts) or (0.0,)


def remember(notes: Notes, candidate: str, history: Sequence[str]) -> None:
    """Keep what a candidate was written from, so that the next refinement round goes on from it."""
    notes.put(f"history {candidate}", json.dumps(list(history)))


def recall(notes: Notes, candidate: str | None) -> tuple[str, ...]:
    """Find what a candidate was written from; nothing for a skill that was not written here."""
    kept = None if candidate is None else notes.get(f"history {candidate}")
    return () if kept is None else tuple(json.loads(kept))
