"""The paths at which two JSON values differ, the first differences first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wer.records import Json

_EXCERPT = 90
_PATH = 120
_ABSENT: Final = object()


def differences(got: Json, wanted: Json, path: str = "state") -> Iterator[str]:
    """Walk both values together and yield a line for each difference, such as
    ``state.orders[0].total is 3, expected 4``.
    """
    got_members, wanted_members = _members(got), _members(wanted)
    same_kind = isinstance(got, Mapping) == isinstance(wanted, Mapping)
    if got_members is not None and wanted_members is not None and same_kind:
        for key in dict.fromkeys([*wanted_members, *got_members]):
            yield from differences(
                got_members.get(key, _ABSENT), wanted_members.get(key, _ABSENT), f"{path}{key}"
            )
    elif not _equal(got, wanted):
        yield f"{path[-_PATH:]} is {_excerpt(got)}, expected {_excerpt(wanted)}"


def _members(value: Json) -> dict[str, Json] | None:
    if isinstance(value, Mapping):
        return {f".{key}": item for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {f"[{index}]": item for index, item in enumerate(value)}
    return None


def _equal(got: Json, wanted: Json) -> bool:
    return isinstance(got, bool) == isinstance(wanted, bool) and bool(got == wanted)


def _excerpt(value: Json) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value)
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 4]} ..."
