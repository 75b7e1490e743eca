"""Skills as prompts: the document that a writer reads and writes, and what an executor is told.

How skills lie on disk is in `wer.skills.files`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from wer.errors import SkillError
from wer.records import Skill
from wer.skills.cleaning import harmless, plain
from wer.skills.files import description_problem, name_problem

_MAX_CHARACTERS = 20_000
_BLOCK = re.compile(r"</?skill>", re.IGNORECASE)
_FENCE = re.compile(r"\A```[a-z]*[ \t]*\n(.*)\n```\Z", re.DOTALL)
_HEADER = re.compile(
    r"(?:\*\*|__)?(name|description)(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(.*)", re.IGNORECASE
)
_TITLE = re.compile(r"#[ \t]+(.+)")
_HEADING = re.compile(r"(#{1,6})[ \t]*(\S.*)")
_NUMBERED = re.compile(r"[ ]{0,3}\d{1,3}[.)][ \t]+(\S.*)")
_ITEMS = {
    "workflow": _NUMBERED,
    "notes": re.compile(r"[ ]{0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+(\S.*)"),
    "other": re.compile(r"(?!)()"),
}


def parse_document(text: str, *, parent: Skill) -> Skill:
    """Read a skill as a model writes it, between the delimiters of its skill block.

    A name and a description come from leading ``name:`` and ``description:`` lines
    (with or without ``---`` around them) or a ``# Title``; what is missing, and the
    scripts, are the parent's. The text is hostile: invisible characters go, and
    tokens of chat templates lose their brackets.

    Raises:
        SkillError: The text is too long, nests a skill block, or has no numbered step.
    """
    if len(text) > _MAX_CHARACTERS:
        raise SkillError(
            f"the skill has {len(text)} characters, at most {_MAX_CHARACTERS} are read. Write less."
        )
    text = harmless(plain(text)).strip()
    if _BLOCK.search(text):
        raise SkillError("the skill block contains another skill block. Write exactly one.")
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    given, body = _split_header(text)
    steps = [step for kind, step in _items(body) if kind == "workflow"]
    if not steps:
        raise SkillError("the skill has no workflow step. Write '## Workflow' and a numbered list under it.")
    description = given.get("description") or parent.description or steps[0][:200]
    skill = Skill(
        name=slug(given.get("name", "")) or parent.name or "skill",
        description=" ".join(description.split()),
        body=body,
        scripts=parent.scripts,
    )
    problem = name_problem(skill.name) or description_problem(skill.description)
    if problem:
        raise SkillError(problem)
    return skill


def render_document(skill: Skill) -> str:
    """Write a skill in the form that `parse_document` reads; empty for the empty skill."""
    if skill.empty:
        return ""
    return harmless(f"name: {skill.name}\ndescription: {skill.description}\n\n{skill.body.strip()}\n")


def skill_prompt(skill: Skill) -> str:
    """Return the section that a skill adds to the end of an executor's system prompt; no skill adds nothing."""
    return "" if skill.empty else f"# Skill\n\n{harmless(skill.body)}"


def slug(text: str) -> str:
    """Make a valid skill name of a title; empty when no letter or digit can be kept."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:64].rstrip("-")


def workflow(skill: Skill) -> tuple[str, ...]:
    """List the numbered steps, each on one line."""
    return tuple(text for kind, text in _items(skill.body) if kind == "workflow")


def notes(skill: Skill) -> tuple[str, ...]:
    """List the items under the heading "Notes", each on one line."""
    return tuple(text for kind, text in _items(skill.body) if kind == "notes")


def _split_header(text: str) -> tuple[dict[str, str], str]:
    """Take name and description off a document's head."""
    lines = text.split("\n")
    framed = lines[0].strip() == "---"
    given: dict[str, str] = {}
    start = int(framed)
    for line in lines[start:]:
        match = _HEADER.fullmatch(line.strip())
        if match and match[1].lower() not in given:
            given[match[1].lower()] = _unquoted(" ".join(match[2].split()))
        elif framed and line.strip() == "---":
            start += 1
            break
        elif line.strip() and not framed:
            break
        start += 1
        if len(given) == 2 and not framed:
            break
    body = "\n".join(lines[start:]).strip()
    first, _, rest = body.partition("\n")
    title = _TITLE.fullmatch(first)
    if title and "name" not in given and slug(title[1]) not in ("", "workflow", "notes"):
        given["name"], body = title[1], rest.strip()
    return given, body


def _unquoted(text: str) -> str:
    while len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`*" and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _items(body: str) -> Iterator[tuple[str, str]]:
    """Yield ``("workflow", step)`` and ``("notes", note)`` in order; wrapped lines are joined.

    A numbered list outside any known section is a workflow, too.
    """
    section, depth, fenced, item = "workflow", 0, False, ""
    for line in body.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _heading(line)
        begun = None if fenced or heading else _ITEMS[section].fullmatch(line)
        if heading or begun:
            if item:
                yield section, item
            item = begun[1].strip() if begun else ""
        elif item and line.strip():
            item += " " + line.strip()
        if heading and heading[0] in ("workflow", "notes"):
            section, depth = heading
        elif heading and heading[1] <= depth:
            section, depth = "other", 0
    if item:
        yield section, item


def _heading(line: str) -> tuple[str, int] | None:
    """Read a heading as its lower-case title and depth: 1-6, or 7 for ``**Notes**`` and ``Notes:``."""
    if match := _HEADING.fullmatch(line):
        return match[2].strip(" \t:*_#").lower(), len(match[1])
    title = line.strip(" \t:*_").lower()
    return (title, 7) if title in ("workflow", "notes") else None
