"""Records to JSON and back: the only module that knows cattrs' converters for them."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cattrs.preconf.json import make_converter

T = TypeVar("T")

_converter = make_converter(omit_if_default=True)


def to_json(record: Any) -> str:
    """Write a record as compact JSON; fields at their default are left out."""
    return json.dumps(
        _converter.unstructure(record), ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )


def from_json(text: str, kind: type[T]) -> T:
    """Read a record that `to_json` wrote."""
    return _converter.structure(json.loads(text), kind)
