"""The verdict: what the episode changed in the database, against what it should have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_FREE = {"summary", "due"}  # words of the agent's own, and what follows from the priority


def check(task: Any, end: Any) -> tuple[float, str]:
    """Give the share of changed columns that are right, 1 when all are; and a line for each that is not."""
    wanted, found = dict(_facts(task.expect)), dict(_facts(end.state))
    places = sorted(wanted.keys() | found.keys())
    wrong = [place for place in places if place not in found or wanted.get(place, ...) != found[place]]
    lines = [f"{' '.join(place)} {_difference(place, wanted, found)}" for place in wrong]
    return 1 - len(wrong) / max(len(places), 1), "\n".join(lines)


def _facts(changes: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk down table, row and column; whatever else an agent left behind is a fact too."""
    if not isinstance(changes, dict):
        yield place, changes
        return
    for name, below in changes.items():
        if name not in _FREE:
            yield from _facts(below, (*place, name))


def _difference(place: tuple[str, ...], wanted: dict[Any, Any], found: dict[Any, Any]) -> str:
    if place not in found:
        return f"did not become {wanted[place]!r}"
    if place not in wanted:
        return f"became {found[place]!r}, and should not have changed"
    return f"became {found[place]!r} instead of {wanted[place]!r}"
