"""What needs no model: equal edits become one, the most prevalent come first, and none contradicts another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from attrs import evolve, frozen

from wer_trace2skill.edits import Edit, clash, locate

_MARKER = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+")


@frozen(kw_only=True)
class Patch:
    """Edits that can all be made together, the most prevalent first.

    Attributes:
        description: Of the skill, where one is created; else empty.
    """

    edits: tuple[Edit, ...]
    description: str = ""


def united(edits: Sequence[Edit], base: str) -> tuple[Edit, ...]:
    """Make one of edits that say the same, with all their trajectories behind it; the first one's words stay."""
    found: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        key = _identity(edit, base)
        same = found.get(key)
        found[key] = edit if same is None else evolve(same, support=same.support | edit.support)
    return tuple(found.values())


def ranked(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Order by prevalence; edits with equally many trajectories behind them keep their order."""
    return tuple(sorted(edits, key=lambda edit: -len(edit.support)))


def conflicts(edits: Sequence[Edit], base: str) -> tuple[tuple[int, int], ...]:
    """The pairs, by their positions, that can't both be made."""
    places = [locate(edit, base) for edit in edits]
    return tuple(
        (one, other) for one, other in combinations(range(len(edits)), 2) if clash(places[one], places[other])
    )


def peaceful(edits: Sequence[Edit], base: str) -> tuple[tuple[Edit, ...], tuple[Edit, ...]]:
    """Take edits by prevalence, and withhold each that clashes with one that was taken.

    Returns:
        The taken, ranked, and the withheld.
    """
    taken: list[Edit] = []
    withheld: list[Edit] = []
    for edit in ranked(edits):
        place = locate(edit, base)
        clashes = any(clash(place, locate(other, base)) for other in taken)
        (withheld if clashes else taken).append(edit)
    return tuple(taken), tuple(withheld)


def _identity(edit: Edit, base: str) -> tuple[object, ...]:
    said = _MARKER.sub("", " ".join(edit.text.casefold().split())).rstrip(".")
    if edit.op in ("insert", "note"):
        return ("add", said)
    if edit.op == "section":
        return ("section", edit.section.casefold(), said)
    return (edit.op, locate(edit, base).touched, said)
