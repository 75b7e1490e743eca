"""The last step: the merged patch is applied to the base by program, and the result must be a sound skill."""

from __future__ import annotations

from attrs import evolve, frozen

from wer.errors import SkillError
from wer.records import Skill
from wer.skills import parse_document, render_document
from wer_trace2skill.conflicts import Patch, ranked
from wer_trace2skill.edits import Edit, applied


@frozen(kw_only=True)
class Result:
    """What a patch made of the base.

    Attributes:
        skill: The base itself where no edit could stay.
        edits: Those that stayed, the most prevalent first.
        problem: Why others did not; empty when all stayed.
    """

    skill: Skill
    edits: tuple[Edit, ...]
    problem: str = ""


def apply_patch(base: Skill, patch: Patch, *, max_words: int) -> Result:
    """Apply a patch without clashes; while the result is not valid, its least prevalent edit goes.

    An edit that breaks a sound base all by itself goes first.
    """
    edits = ranked(patch.edits)
    limit = max(max_words, len(base.body.split()))
    problem = ""
    if not _problem(base, base, limit):
        broken = [edit for edit in edits if _problem(_edited(base, patch, (edit,)), base, limit)]
        if broken:
            problem = _problem(_edited(base, patch, broken[:1]), base, limit)
        edits = tuple(edit for edit in edits if edit not in broken)
    while edits:
        skill = _edited(base, patch, edits)
        wrong = _problem(skill, base, limit)
        if not wrong:
            return Result(skill=skill, edits=edits, problem=problem)
        problem, edits = wrong, edits[:-1]
    return Result(skill=base, edits=(), problem=problem or "no edit is left")


def _edited(base: Skill, patch: Patch, edits: tuple[Edit, ...] | list[Edit]) -> Skill:
    """The base with these edits; a name and scripts are never edited."""
    skill = evolve(base, body=applied(edits, base.body), description=patch.description or base.description)
    if skill.description:
        return skill
    try:
        return evolve(skill, description=parse_document(render_document(skill), parent=skill).description)
    except SkillError:
        return skill


def _problem(skill: Skill, base: Skill, max_words: int) -> str:
    """What the format check says; empty when all is well."""
    words = len(skill.body.split())
    if words > max_words:
        return f"the skill would have {words} words, at most {max_words} are allowed"
    try:
        read = parse_document(render_document(skill), parent=skill)
    except SkillError as error:
        return str(error)
    if read.name != base.name:
        return f"the skill would be called {read.name!r} instead of {base.name!r}"
    return ""
