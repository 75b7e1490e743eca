"""What is shown of a run: its skills, their diff to the seed, and the matched pair behind each changed line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from wer.records import Rollout, Skill
from wer.reports.lineage import ChangedLine, Revision, changed_lines, diff, revisions, root
from wer.skills import render_document
from wer.skills.cleaning import plain
from wer.store import Store
from wer.writing import render_trajectory

FINAL = {
    "refined": "the refined skill",
    "untrained": "the untrained optimizer's skill (this run has no refined one)",
    "so-far": "the best skill so far (a cap ended this run)",
    "seed": "the seed skill (this run has no revision of it)",
    "skill": "the skill that was measured",
    "new": "the newer of two skills",
}
"""What is shown of a domain, the first that the run has."""
REVISED = ("refined", "untrained")


def published(store: Store) -> Mapping[str, Mapping[str, Skill]]:
    """Skills by domain and condition."""
    found: dict[str, dict[str, Skill]] = {}
    for key, skill_id in store.documents("published").items():
        condition, _, domain = key.partition(" ")
        found.setdefault(domain, {})[condition] = store.skill(skill_id)
    return found


def final(skills: Mapping[str, Skill]) -> str | None:
    """The condition of a domain's last skill; None where skills were only compared."""
    return next((name for name in FINAL if name in skills), None)


def whole(
    store: Store, domain: str, skills: Mapping[str, Skill], *, trajectories: bool
) -> Iterator[RenderableType]:
    """A domain's skill and what changed in it.

    Args:
        skills: Of the domain, by condition.
        trajectories: The call sequences of the evidence in full, too.
    """
    condition = final(skills)
    if condition is None:
        return
    yield Rule(Text(plain(f"{domain}: {FINAL[condition]}")), align="left")
    yield Text(plain(render_document(skills[condition])))
    if condition in REVISED:
        yield from changes(store, domain, skills, trajectories=trajectories)


def changes(
    store: Store, domain: str, skills: Mapping[str, Skill], *, trajectories: bool
) -> Iterator[RenderableType]:
    """The diff of a revised skill to its seed skill, and where each new line came from."""
    seed, last, history = _lineage(store, domain, skills)
    yield Rule("changes to the seed skill" if not seed.empty else "all of it is new", align="left")
    yield Syntax(plain(diff(seed, last)) or "(none)", "diff", background_color="default")
    for changed in changed_lines(seed, last, history):
        yield Text(plain(f"+ {changed.line}"), style="green")
        yield Text(plain(f"    {_origin(changed)}"))
        if trajectories and changed.origin is not None:
            for rollout in changed.origin.pair:
                yield Text(plain(render_trajectory(rollout.trajectory)))


def matched_pair(
    store: Store, domain: str, skills: Mapping[str, Skill]
) -> tuple[Revision, Rollout, Rollout] | None:
    """The revision that passed most of those written on seeing a success and a failure of one task and skill.

    Returns:
        The revision, the success, the failure; None where no revision was shown such a pair.
    """
    found = []
    for revision in revisions(store, domain, final(skills) or ""):
        sides = {rollout.verdict.passed: rollout for rollout in revision.pair}
        if len(sides) == 2 and revision.before.id != revision.after.id:
            found.append((revision, sides[True], sides[False]))
    return max(found, key=lambda each: each[0].passed / each[0].rollouts, default=None)


def _lineage(store: Store, domain: str, skills: Mapping[str, Skill]) -> tuple[Skill, Skill, list[Revision]]:
    condition = final(skills) or ""
    history = list(revisions(store, domain, condition))
    return skills.get("seed") or root(history), skills[condition], history


def _origin(changed: ChangedLine[Revision]) -> str:
    origin = changed.origin
    if origin is None:
        return "written by the merger; no revision has a line like it"
    how = "from" if changed.likeness == 1.0 else f"reworded ({changed.likeness:.0%} alike) from"
    pair = ", ".join(_named(rollout) for rollout in origin.pair)
    return (
        f"{how} {origin.stage}, {origin.task_id}: {origin.passed}/{origin.rollouts} passed after it; "
        f"written on seeing {pair}"
    )


def _named(rollout: Rollout) -> str:
    return f"{'success' if rollout.verdict.passed else 'failure'} {rollout.key}"
