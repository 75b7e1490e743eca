"""Where two exported states differ, as lines that an optimizer can read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Final

from wer.records import Json

MAX_LINES = 6
_EXCERPT = 90
_PATH = 120
_ABSENT: Final = object()


def state_findings(state: Mapping[str, Json], expected: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """List differences in the attributes that the reference has; what else the state holds is ignored.

    Numbers compare as Python compares them: 1, 1.0 and True are equal, as in the
    official state check.
    """
    found = (
        finding
        for name, attributes in expected.items()
        for attribute, wanted in attributes.items()
        for finding in _differences(
            state.get(name, {}).get(attribute, _ABSENT), wanted, f"{name}.{attribute}"
        )
    )
    return list(itertools.islice(found, MAX_LINES))


def one_line(text: str) -> str:
    """A text without its line breaks, cut to a length that reads well in a list."""
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 4]} ..."


def _differences(got: Json, wanted: Json, path: str) -> Iterator[str]:
    if got == wanted:
        return
    got_members, wanted_members = _members(got), _members(wanted)
    if got_members is None or wanted_members is None or type(got) is not type(wanted):
        yield f"{_short(path)} is {_excerpt(got)}, expected {_excerpt(wanted)}"
        return
    for key in [*wanted_members, *(key for key in got_members if key not in wanted_members)]:
        yield from _differences(
            got_members.get(key, _ABSENT), wanted_members.get(key, _ABSENT), f"{path}{key}"
        )


def _members(value: Json) -> dict[str, Json] | None:
    """The parts of a container by how a path names them; None for anything else."""
    if isinstance(value, Mapping):
        if "$dict" in value:
            return {f"[{json.dumps(key)}]": item for key, item in value["$dict"]}
        return {f".{key}": item for key, item in value.items()}
    if isinstance(value, list):
        return {f"[{index}]": item for index, item in enumerate(value)}
    return None


def _excerpt(value: Json) -> str:
    return "absent" if value is _ABSENT else one_line(json.dumps(value))


def _short(path: str) -> str:
    return path if len(path) <= _PATH else f"... {path[-_PATH:]}"
