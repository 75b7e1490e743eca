"""Where two JSON values differ, as lines that an optimizer can read: what verifiers of states say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from wer.records import Json

Members: TypeAlias = Callable[[Json], Mapping[str, Json] | None]

ABSENT: Final = object()
"""Stands for the value of a path that only the other side has."""

MAX_LINES = 6
"""As many differences of one rollout as a diagnosis needs."""

_EXCERPT = 90
_PATH = 120


def members(value: Json) -> Mapping[str, Json] | None:
    """The parts of a container by how a path names them, ``.key`` or ``[0]``; None for anything else."""
    if isinstance(value, Mapping):
        return {f".{key}": item for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {f"[{index}]": item for index, item in enumerate(value)}
    return None


def differences(
    got: Json, wanted: Json, path: str, *, equal: Callable[[Json, Json], bool], members: Members = members
) -> Iterator[str]:
    """Walk both values together; the first differences come first, in the order of the wanted value.

    Args:
        path: What the whole value is called, such as ``state``.
        equal: The verifier's rule. A container for which it is false is looked into, and
            no difference is found when all of its members are equal.
        members: How a container is taken apart.

    Yields:
        A line each, such as ``state.orders[0].total is 3, expected 4``.
    """
    if equal(got, wanted):
        return
    got_members, wanted_members = members(got), members(wanted)
    same_kind = isinstance(got, Mapping) == isinstance(wanted, Mapping)
    if got_members is None or wanted_members is None or not same_kind:
        yield f"{_short(path)} is {_excerpt(got)}, expected {_excerpt(wanted)}"
        return
    for key in dict.fromkeys([*wanted_members, *got_members]):
        yield from differences(
            got_members.get(key, ABSENT),
            wanted_members.get(key, ABSENT),
            f"{path}{key}",
            equal=equal,
            members=members,
        )


def one_line(text: str) -> str:
    """A text without its line breaks, cut to a length that reads well in a list."""
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 4]} ..."


def _excerpt(value: Json) -> str:
    return "absent" if value is ABSENT else one_line(json.dumps(value))


def _short(path: str) -> str:
    return path if len(path) <= _PATH else f"... {path[-_PATH:]}"
