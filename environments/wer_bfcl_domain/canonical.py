"""Any state as canonical JSON whose equality is Python's equality.

Plain JSON stays as it is; what JSON lacks is tagged: ``{"$set": [...]}``,
``{"$tuple": [...]}``, ``{"$dict": [[key, value], ...]}`` for keys that are not plain
strings, ``{"$object": "File", ...public attributes}``, ``{"$float": "nan"}``. Numbers
stay numbers, so that 1, 1.0 and True compare as they do in Python.
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

Json: TypeAlias = Any

MAX_DEPTH = 96
MAX_NODES = 100_000
MAX_CHARACTERS = 1_000_000
_DETAILS = ("parent",)
"""Public attributes that the benchmark's own ``__eq__`` leaves out: a directory's way back."""


class _TooLargeError(Exception):
    pass


def public(instance: object) -> dict[str, Any]:
    """The attributes that the official state check compares."""
    return {name: value for name, value in vars(instance).items() if not name.startswith("_")}


class Exporter:
    """Exports one world; its limits hold for all of the world's values together.

    A value beyond `MAX_NODES` values, `MAX_CHARACTERS` of text or `MAX_DEPTH` levels, or
    one that contains itself, becomes ``{"$too_large": ...}``: no reference looks like that.
    """

    def __init__(self) -> None:
        self._nodes = 0
        self._characters = 0

    def canonical(self, value: object) -> Json:
        """Export one value, which the world's own code may have made as large or as deep as it likes."""
        try:
            return self._export(value, 0)
        except _TooLargeError as limit:
            return {"$too_large": str(limit)}

    def _export(self, value: object, depth: int) -> Json:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise _TooLargeError(f"more than {MAX_NODES} values")
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int():
                return value if value.bit_length() < 1024 else {"$int": hex(value)}
            case float():
                return value if math.isfinite(value) else {"$float": repr(value)}
            case list():
                return self._all(value, depth)
            case tuple():
                return {"$tuple": self._all(value, depth)}
            case set() | frozenset():
                return {"$set": sorted(self._all(value, depth), key=_order)}
            case dict():
                return self._dict(value, depth)
            case _:
                fields = {n: v for n, v in public(value).items() if n not in _DETAILS}
                return {"$object": type(value).__name__, **self._dict(fields, depth)}

    def _text(self, value: str) -> str:
        self._characters += len(value)
        if self._characters > MAX_CHARACTERS:
            raise _TooLargeError(f"more than {MAX_CHARACTERS} characters")
        return value

    def _all(self, values: Any, depth: int) -> list[Json]:
        return [self._export(item, depth + 1) for item in values]

    def _dict(self, value: dict[Any, Any], depth: int) -> Json:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {self._text(key): self._export(item, depth + 1) for key, item in value.items()}
        pairs = [[self._export(k, depth + 1), self._export(v, depth + 1)] for k, v in value.items()]
        return {"$dict": sorted(pairs, key=lambda pair: _order(pair[0]))}


def _order(value: Json) -> tuple[int, float, str]:
    """Numbers by value, then the rest by their text: the same order for equal values."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, json.dumps(value, sort_keys=True)
