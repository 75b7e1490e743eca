"""Records to JSON and back: the only module that knows cattrs' converters for them."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cattrs import BaseValidationError
from cattrs.preconf.json import make_converter

from wer.errors import StoreError

T = TypeVar("T")

_converter = make_converter(omit_if_default=True)


def to_json(record: Any) -> str:
    """Write a record as compact JSON; fields at their default are left out."""
    return json.dumps(
        _converter.unstructure(record), ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )


def from_json(text: str, kind: type[T]) -> T:
    """Read a record that `to_json` wrote.

    Raises:
        StoreError: The text is something else.
    """
    try:
        return _converter.structure(json.loads(text), kind)
    except (BaseValidationError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"the store holds something that is no {kind.__name__}: {text[:60]!r}. The run folder is damaged."
        ) from error
