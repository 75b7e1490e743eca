"""A skill leaves a run as it was measured: a folder that somebody changed since then is not that skill."""

from __future__ import annotations

from pathlib import Path

from wer.errors import SkillError, StoreError
from wer.records import Skill
from wer.skills import provenance, render_skill_md

_FILE = "SKILL.md"


def measured_folder(run: Path, condition: str, skill: Skill) -> Path:
    """The Agent Skills folder of a published skill: to the byte as the run wrote it, and no file more.

    Args:
        skill: As the store has it.

    Raises:
        StoreError: What lies there is gone, or another skill.
    """
    folder = run / "skills" / condition / skill.name
    try:
        found = {
            path.relative_to(folder).as_posix(): b"" if path.is_symlink() else path.read_bytes()
            for path in folder.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        text = found[_FILE].decode("utf-8")
        wanted = {**skill.scripts, _FILE: render_skill_md(skill, provenance(text))}
    except (OSError, KeyError, ValueError, SkillError) as error:
        raise StoreError(f"the {condition} skill of run {run.name!r} is damaged: {error}") from error
    if found != {path: content.encode("utf-8") for path, content in wanted.items()}:
        raise StoreError(
            f"{str(folder)!r} is not what was measured: it was changed since. Measure the changed skill with wer eval, "
            "or put the old one back: wer show prints it."
        )
    return folder
