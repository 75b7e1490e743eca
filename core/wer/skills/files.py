"""Skills as files: Agent Skills folders with a ``SKILL.md``, read strictly and written back verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from wer.errors import SkillError
from wer.records import Skill

_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*(?:\r?\n|\Z)(?:\r?\n)?(?P<body>.*)\Z",
    re.DOTALL | re.MULTILINE,
)
_MAX_FRONT_MATTER = 16_384  # characters
_MAX_SCRIPT = 262_144  # bytes


def parse_skill_md(text: str, *, source: str = _FILE) -> Skill:
    """Read the text of a ``SKILL.md``; its body is kept verbatim.

    Args:
        source: Named in errors.

    Raises:
        SkillError: With the line, and what to do about it.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise SkillError(
            f"{source} line 1: no front matter. A SKILL.md starts with a line '---', "
            "'name: ...', 'description: ...' and another line '---'."
        )
    if len(match["yaml"]) > _MAX_FRONT_MATTER:
        raise SkillError(f"{source} line 2: front matter above {_MAX_FRONT_MATTER} characters. Shorten it.")
    fields = _fields(match["yaml"], source)
    name = _text(fields, "name", match["yaml"], source)
    description = " ".join(_text(fields, "description", match["yaml"], source).split())
    for key, problem in (("name", name_problem(name)), ("description", description_problem(description))):
        if problem:
            raise SkillError(f"{source} line {_line(key, match['yaml'])}: {problem}")
    return Skill(name=name, description=description, body=match["body"])


def render_skill_md(skill: Skill, metadata: Mapping[str, str] | None = None) -> str:
    """Write a skill as the text of a ``SKILL.md``.

    Args:
        metadata: Provenance for the front matter's ``metadata``.

    Raises:
        SkillError: Its name or description breaks the rules of Agent Skills.
    """
    description = " ".join(skill.description.split())
    problem = name_problem(skill.name) or description_problem(description)
    if problem:
        raise SkillError(f"this skill can't be a SKILL.md: {problem}")
    fields: dict[str, Any] = {"name": skill.name, "description": description}
    if metadata:
        fields["metadata"] = {str(key): str(value) for key, value in metadata.items()}
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1 << 20)
    return f"---\n{front}---\n\n{skill.body}"


def provenance(text: str) -> Mapping[str, str]:
    """What `save_skill` wrote into a ``SKILL.md``'s ``metadata`` of where the skill is from.

    Raises:
        SkillError: It has no front matter that can be read.
    """
    match = _FRONT_MATTER.match(text)
    metadata = _fields(match["yaml"], _FILE).get("metadata") if match else None
    if not isinstance(metadata, Mapping):
        return {}
    return {key: metadata[key] for key in metadata if str(key).startswith("wer-")}


def load_skill(path: Path) -> Skill:
    """Read a skill from its folder, with its scripts, or from a ``SKILL.md`` beside them.

    Raises:
        SkillError: Something is missing, unreadable or against the rules.
    """
    if (path / "run.toml").is_file():
        raise SkillError(f"{str(path)!r} is a run, not a skill. Name one of the folders below its skills/.")
    file = path / _FILE if path.is_dir() else path
    skill = parse_skill_md(_read(file, _MAX_SCRIPT), source=str(file))
    scripts = {
        item.relative_to(file.parent).as_posix(): _read(item, _MAX_SCRIPT)
        for item in _script_files(file.parent)
    }
    return Skill(name=skill.name, description=skill.description, body=skill.body, scripts=scripts)


def save_skill(skill: Skill, folder: Path, metadata: Mapping[str, str] | None = None) -> Path:
    """Write a skill to ``folder/NAME/`` and return that path; files of an older version are replaced.

    Raises:
        SkillError: The skill breaks the rules, or scripts that it does not have lie there.
    """
    text = render_skill_md(skill, metadata)
    for script in skill.scripts:
        _check_script_path(script)
    target = folder / skill.name
    strays = {item.relative_to(target).as_posix() for item in _script_files(target)} - set(skill.scripts)
    if strays:
        raise SkillError(
            f"{str(target)!r} holds scripts that skill {skill.name!r} does not have: "
            f"{', '.join(sorted(strays))}. Remove them, or save to another folder."
        )
    for relative, content in {**skill.scripts, _FILE: text}.items():
        file = target / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode("utf-8"))
    return target


def name_problem(name: str) -> str:
    """Say what is wrong with a skill's name by the rules of Agent Skills; empty when nothing is."""
    if len(name) <= 64 and _NAME.fullmatch(name):
        return ""
    return (
        f"name {name[:80]!r} is not 1-64 lowercase letters, digits and single hyphens inside. "
        "Rename it, for example to 'refund-orders'."
    )


def description_problem(description: str) -> str:
    """Say what is wrong with a skill's description; empty when nothing is."""
    if 1 <= len(description) <= 1024:
        return ""
    return f"description has {len(description)} characters, expected 1-1024. Say in one line what it is for."


def _fields(text: str, source: str) -> Mapping[str, Any]:
    try:
        fields = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        raise SkillError(
            f"{source} line {line}: front matter is not YAML: {error.problem}. Put values in quotes."
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SkillError(
            f"{source} line 2: front matter is not YAML: {error}. Keep to plain strings."
        ) from error
    if not isinstance(fields, dict):
        raise SkillError(
            f"{source} line 2: front matter is not a list of 'key: value' lines. Add name and description."
        )
    return fields


def _text(fields: Mapping[str, Any], key: str, front: str, source: str) -> str:
    if key not in fields:
        raise SkillError(f"{source} line 2: front matter has no {key!r}. Add a line '{key}: ...'.")
    value = fields[key]
    if not isinstance(value, str):
        kind = type(value).__name__
        raise SkillError(
            f"{source} line {_line(key, front)}: {key} is of type {kind}, expected text. Put it in quotes."
        )
    return value.strip()


def _line(key: str, front: str) -> int:
    """Find a key's line in the file: the front matter's first line is line 2."""
    match = re.search(rf"^[\"']?{key}[\"']?\s*:", front, re.MULTILINE)
    return 2 + front.count("\n", 0, match.start()) if match else 2


def _read(file: Path, limit: int) -> str:
    try:
        if file.exists() and not file.is_file():
            raise SkillError(f"{str(file)!r} is no ordinary file. Give a SKILL.md, or a folder with one.")
        with file.open("rb") as opened:
            content = opened.read(limit + 1)
        if len(content) > limit:
            raise SkillError(f"{str(file)!r} is above {limit} bytes. Make it shorter.")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        raise SkillError(
            f"cannot read {str(file)!r}: {error}. Give a SKILL.md, or a folder with one, in UTF-8."
        ) from error


def _script_files(folder: Path) -> Iterator[Path]:
    for item in sorted((folder / "scripts").rglob("*")):
        if item.is_symlink():
            raise SkillError(f"{str(item)!r} is a link. Copy the file itself into the skill's folder.")
        if item.is_file() and "__pycache__" not in item.parts:
            yield item


def _check_script_path(text: str) -> None:
    parts = text.split("/")
    if len(parts) < 2 or parts[0] != "scripts" or {"", ".", ".."} & set(parts) or re.search(r"[\\\0:]", text):
        raise SkillError(
            f"script path {text!r} does not lie under 'scripts/'. Name it like 'scripts/check.py'."
        )
