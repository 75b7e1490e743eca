"""The edits of a patch: exact, each against the one base skill, and applied all at once by program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from attrs import field, frozen

from wer.records import Json
from wer.skills.cleaning import harmless, plain
from wer_trace2skill.asking import Refusal

Operation = Literal["insert", "replace", "delete", "note", "section"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
DEEPENING: tuple[Operation, ...] = OPERATIONS[:4]
"""Whole sections are written where a skill is created, and by mergers alone."""

KEYS = ("op", "section", "anchor", "text", "lesson")

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_LISTED = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|```)\s*")


@frozen(kw_only=True)
class Edit:
    """One edit of the base skill's body.

    Attributes:
        section: The heading that it belongs under; where ``note`` and ``section`` write.
        anchor: A passage that occurs in the base exactly once; for the first three operations.
        text: What is inserted below the anchor's line, takes its place, is added at the end of the
            section, or is all that the section says.
        lesson: What the trajectory taught, in a sentence.
        support: The trajectories behind it, by their rollouts' keys, carried through all merges.
    """

    op: Operation
    section: str
    anchor: str
    text: str
    lesson: str
    support: frozenset[str] = field(factory=frozenset)


@frozen(kw_only=True)
class Place:
    """Where an edit lands in the base.

    Attributes:
        touched: Start and end of what it leans on: its anchor, or its section's heading.
        cut: Start and end of what it takes away; both the same where it only adds.
        text: What comes there.
        missing: The section that it writes into and that the base lacks; empty for none.
        exclusive: Whether no other edit may touch the same.
    """

    touched: tuple[int, int]
    cut: tuple[int, int]
    text: str
    missing: str = ""
    exclusive: bool = False


def read_edit(found: Json, base: str, *, operations: Sequence[Operation]) -> Edit:
    """Read one edit of a model's answer, and see that it can be applied to the base.

    Raises:
        Refusal: It can't.
    """
    given = {key: found.get(key, "") for key in KEYS} if isinstance(found, dict) else {}
    if not given or not all(isinstance(value, str) for value in given.values()):
        raise Refusal("bad edit", f"an edit must be an object of texts: {', '.join(KEYS)}")
    if given["op"] not in operations:
        raise Refusal("bad edit", f"'op' must be one of {', '.join(operations)}, got {given['op']!r}")
    text, lesson = (harmless(plain(given[key])).strip("\n") for key in ("text", "lesson"))
    if given["op"] != "delete" and not text.strip():
        raise Refusal("bad edit", f"{given['op']}: 'text' is empty")
    section = " ".join(plain(given["section"]).strip(" \t\n#:*").split()) or "Notes"
    edit = Edit(op=given["op"], section=section, anchor=given["anchor"], text=text, lesson=lesson.strip())
    locate(edit, base)
    return edit


def locate(edit: Edit, base: str) -> Place:
    """Find an edit's place.

    Raises:
        Refusal: The anchor is empty, does not occur, or occurs more than once.
    """
    if edit.op in ("note", "section"):
        return _in_section(edit, base)
    start, end = _anchored(edit, base)
    if edit.op == "insert":
        line_end = base.find("\n", end)
        line_end = len(base) if line_end < 0 else line_end
        return Place(touched=(start, end), cut=(line_end, line_end), text=f"\n{edit.text}")
    if edit.op == "replace":
        return Place(touched=(start, end), cut=(start, end), text=edit.text, exclusive=True)
    whole_lines = base[:start].endswith("\n") and base[end : end + 1] in ("", "\n")
    return Place(touched=(start, end), cut=(start - whole_lines, end), text="", exclusive=True)


def clash(one: Place, other: Place) -> bool:
    """Whether two edits can't both be made: one takes away what the other leans on, or writes."""
    if not (one.exclusive or other.exclusive):
        return False
    if one.missing or other.missing:
        return one.missing == other.missing
    overlap = max(one.touched[0], other.touched[0]) < min(one.touched[1], other.touched[1])
    return overlap or _inside(one.cut[0], other.cut) or _inside(other.cut[0], one.cut)


def applied(edits: Sequence[Edit], base: str) -> str:
    """Make all edits at once; of several that add in one place, the first comes first.

    Raises:
        ValueError: Two of them clash.
    """
    places = [locate(edit, base) for edit in edits]
    done, position = "", 0
    for place in sorted((each for each in places if not each.missing), key=lambda each: each.cut):
        start, end = place.cut
        if start < position:
            raise ValueError("edits of a patch clash")
        done, position = done + base[position:start] + place.text, end
    done += base[position:]
    new: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for edit, place in zip(edits, places, strict=True):
        if place.missing:
            titles.setdefault(place.missing, edit.section)
            new.setdefault(place.missing, []).append(place.text.strip("\n"))
    for key in sorted(new, key=lambda key: key != "workflow"):
        done = f"{done.rstrip()}\n\n## {titles[key]}\n".lstrip("\n") + "\n".join(new[key]) + "\n"
    return done


def _anchored(edit: Edit, base: str) -> tuple[int, int]:
    anchor = edit.anchor.strip("\n")
    if not anchor.strip():
        raise Refusal("bad edit", f"{edit.op}: the anchor is empty")
    start = base.find(anchor)
    if start < 0:
        raise Refusal(
            "bad edit", f"{edit.op}: the anchor {anchor[:80]!r} is not in the skill; copy it exactly"
        )
    if base.find(anchor, start + 1) >= 0:
        raise Refusal(
            "bad edit", f"{edit.op}: the anchor {anchor[:80]!r} occurs more than once; take a longer one"
        )
    return start, start + len(anchor)


def _in_section(edit: Edit, base: str) -> Place:
    key = edit.section.casefold()
    whole = edit.op == "section"
    text = _untitled(edit.text, key) if whole else _as_item(edit.text, key)
    found = next((each for each in _sections(base) if each[0] == key), None)
    if found is None:
        return Place(
            touched=(len(base), len(base)), cut=(len(base),) * 2, text=text, missing=key, exclusive=whole
        )
    _, start, heading_end, end = found
    end = start + len(base[start:end].rstrip())
    if whole:
        return Place(touched=(start, end), cut=(heading_end, end), text=f"\n{text}", exclusive=True)
    return Place(touched=(start, heading_end), cut=(end, end), text=f"\n{text}")


def _sections(base: str) -> Iterator[tuple[str, int, int, int]]:
    """Each section's title in lower case, where its heading starts and ends, and where it ends."""
    headings: list[tuple[int, str, int, int]] = []
    position, fenced = 0, False
    for line in base.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading:
            title = heading[2].strip(" \t:*#").casefold()
            headings.append((len(heading[1]), title, position, position + len(line)))
        position += len(line) + 1
    for index, (depth, title, start, heading_end) in enumerate(headings):
        later = (other[2] for other in headings[index + 1 :] if other[0] <= depth)
        yield title, start, heading_end, next(later, len(base))


def _as_item(text: str, section: str) -> str:
    if _LISTED.match(text):
        return text
    return f"{'1.' if section == 'workflow' else '-'} {text}"


def _untitled(text: str, section: str) -> str:
    first, _, rest = text.strip("\n").partition("\n")
    heading = _HEADING.fullmatch(first)
    return rest.strip("\n") if heading and heading[2].strip(" \t:*#").casefold() == section else text


def _inside(point: int, cut: tuple[int, int]) -> bool:
    return cut[0] < point < cut[1]
