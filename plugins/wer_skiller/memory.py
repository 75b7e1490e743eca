"""The replay memory of a task: what was tried, why, and what came of it.

Kept in the run's notes, an entry a candidate. A task's memory is the chain of candidates that led
to the skill in force, so that it is the same when an interrupted run goes on. What an edit led to
is known when the next round's evidence is: `RefinementState.parent` says whose skill it is of.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from wer.codec import from_json, to_json
from wer.contracts import Notes
from wer.records import RefinementState, Rollout


@frozen(kw_only=True)
class Attempt:
    """One update of a skill.

    Attributes:
        parent: Id of the candidate before it; empty for the first.
        failure: The critic's class, or what else made the update.
        signature: Of the failure.
        summary: The critic's, of the cause.
        edits: A line each.
        before: What the rollouts came to when it was made.
        after: What they came to with it; empty while that is not known.
    """

    parent: str
    failure: str
    signature: str
    summary: str
    edits: tuple[str, ...]
    before: str
    after: str = ""


def outcome(rollouts: Sequence[Rollout]) -> str:
    """What evidence came to, in words."""
    passed = sum(rollout.verdict.passed for rollout in rollouts)
    score = sum(rollout.verdict.score for rollout in rollouts) / max(len(rollouts), 1)
    return f"{passed} of {len(rollouts)} shown rollouts passed, mean score {score:.2f}"


def remember(notes: Notes, candidate_id: str, attempt: Attempt) -> None:
    """Keep an update under the candidate that it made."""
    notes.put(f"attempt {candidate_id}", to_json(attempt))


def recall(notes: Notes, state: RefinementState) -> tuple[Attempt, ...]:
    """Give the updates that led to a state's skill, the oldest first, each with its outcome."""
    if state.parent is not None:
        notes.put(f"outcome {state.parent}", outcome(state.evidence))
    found: list[Attempt] = []
    candidate = state.parent
    while candidate:
        kept = notes.get(f"attempt {candidate}")
        if kept is None:
            break
        attempt = from_json(kept, Attempt)
        found.append(evolve(attempt, after=notes.get(f"outcome {candidate}") or ""))
        candidate = attempt.parent
    return tuple(reversed(found))


def told_attempts(attempts: Sequence[Attempt]) -> list[str]:
    """The memory as a block of a prompt; none when nothing was tried."""
    if not attempts:
        return []
    lines = ["# Earlier updates of this skill, the oldest first"]
    for number, attempt in enumerate(attempts, 1):
        lines.append(
            f"{number}. " + ": ".join(filter(None, (attempt.failure, attempt.signature, attempt.summary)))
        )
        lines += [f"   - {edit}" for edit in attempt.edits]
        lines.append(f"   before: {attempt.before}; after: {attempt.after}")
    return ["\n".join(lines)]
