"""A skill leaves a run as it was measured: a folder that somebody changed since then is not that skill."""

from __future__ import annotations

from pathlib import Path

from wer.errors import SkillError, StoreError
from wer.records import Skill
from wer.skills import load_skill, parse_skill_md, render_skill_md


def measured_folder(run: Path, condition: str, skill: Skill) -> Path:
    """The Agent Skills folder of a published skill.

    Args:
        skill: As the store has it.

    Raises:
        StoreError: What lies there is gone, or another skill.
    """
    folder = run / "skills" / condition / skill.name
    wanted = parse_skill_md(render_skill_md(skill))
    try:
        found = load_skill(folder)
    except SkillError as error:
        raise StoreError(f"the {condition} skill of run {run.name!r} is damaged: {error}") from error
    if (found.description, found.body, found.scripts) != (wanted.description, wanted.body, skill.scripts):
        raise StoreError(
            f"{str(folder)!r} is not what was measured: it was changed since. Measure the changed skill with wer eval, "
            "or put the old one back: wer show prints it."
        )
    return folder
