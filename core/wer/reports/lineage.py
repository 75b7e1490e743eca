"""Where a skill came from: its ancestors in the revision tree, and the pair behind each changed line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from wer.records import NO_SKILL, Experience, Rollout, Skill
from wer.store import Store


@frozen(kw_only=True)
class Revision:
    """One application of the operator: a skill, what it became, and the evidence that was shown.

    Attributes:
        pair: The evidence of the state: a success and a failure, or one rollout.
    """

    stage: str
    task_id: str
    before: Skill
    after: Skill
    pair: tuple[Rollout, ...]
    passed: int
    rollouts: int


def revisions(store: Store, domain: str, condition: str) -> Sequence[Revision]:
    """Every revision that a condition's skill can stem from, oldest first: the revision tree as a list.

    Training belongs to the refined skill alone; refinement rounds have a stage a condition.

    Args:
        domain: ``env/domain``.
        condition: ``refined`` or ``untrained``; any other has no revisions.
    """
    stages = (f"refine/{condition}/", *(("train/",) if condition == "refined" else ()))
    return [
        _revision(stage, found)
        for stage, found in store.experiences()
        if stage.startswith(stages)
        and found.candidate.skill is not None
        and f"{found.state.task.env}/{found.state.task.domain}" == domain
    ]


def root(history: Sequence[Revision]) -> Skill:
    """The skill that the whole first stage started from; no skill where it started from several."""
    first = {one.before.id: one.before for one in history if one.stage == history[0].stage}
    return next(iter(first.values())) if len(first) == 1 else NO_SKILL


def _revision(stage: str, found: Experience) -> Revision:
    assert found.candidate.skill is not None
    return Revision(
        stage=stage,
        task_id=found.state.task.id,
        before=found.state.skill,
        after=found.candidate.skill,
        pair=found.state.evidence,
        passed=sum(rollout.verdict.passed for rollout in found.rollouts),
        rollouts=len(found.rollouts),
    )


class Rewrite(Protocol):
    """What a line can be traced to: a skill, and the skill that was made of it."""

    @property
    def before(self) -> Skill:
        """The skill in force."""

    @property
    def after(self) -> Skill:
        """What was written for it."""


R = TypeVar("R", bound=Rewrite)


@frozen(kw_only=True)
class ChangedLine(Generic[R]):
    """A line of the final skill that its seed skill lacks.

    Attributes:
        origin: The revision that wrote the line first, or the closest line to it.
        likeness: 1.0 when the origin has the very line; less when a merge reworded it.
    """

    line: str
    origin: R | None
    likeness: float


def changed_lines(seed: Skill, final: Skill, history: Sequence[R]) -> tuple[ChangedLine[R], ...]:
    """Trace each new line to the first revision that wrote it; a merge may have reworded it."""
    old = set(_lines(seed))
    first: dict[str, R] = {}
    for revision in history:
        known = set(_lines(revision.before))
        for written in _lines(revision.after):
            if written not in known:
                first.setdefault(written, revision)
    return tuple(_trace(line, first) for line in _lines(final) if line not in old)


def _trace(line: str, first: Mapping[str, R]) -> ChangedLine[R]:
    """Find the likest line that was written.

    Args:
        first: The revision that wrote a line first, oldest first.
    """
    if line in first:
        return ChangedLine(line=line, origin=first[line], likeness=1.0)
    best, likeness = None, 0.0
    compared = difflib.SequenceMatcher(None, b=line[:_COMPARED])
    for written, revision in first.items():
        compared.set_seq1(written[:_COMPARED])
        reach = max(likeness, _REWORDED - 1e-9)
        if compared.real_quick_ratio() > reach and compared.quick_ratio() > reach:
            ratio = compared.ratio()
            if ratio > likeness:
                best, likeness = revision, ratio
    return ChangedLine(line=line, origin=best if likeness >= _REWORDED else None, likeness=likeness)


_REWORDED = 0.6
_COMPARED = 1_000
"""Characters of a line: the time grows with their square."""


def _lines(skill: Skill) -> list[str]:
    return [line.strip() for line in skill.body.splitlines() if line.strip()]


def diff(before: Skill, after: Skill) -> str:
    """A unified diff of two skills' bodies."""
    lines = difflib.unified_diff(
        before.body.splitlines(), after.body.splitlines(), before.name or "no skill", after.name, lineterm=""
    )
    return "\n".join(lines)
