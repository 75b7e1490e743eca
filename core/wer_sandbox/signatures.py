"""Arguments that a model wrote, as JSON, fitted to a tool's signature and annotations."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, Union

UNIONS = (Union, type(int | str)) if sys.version_info >= (3, 10) else (Union,)
"""What ``typing.get_origin`` says of ``Optional[X]`` and ``X | Y``."""

_KINDS = {str: "a string", bool: "true or false", int: "an integer", float: "a number"}


class UnfitError(Exception):
    """An argument is missing, unknown, or of another type than the signature says."""


def fitted(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give a bound method's keyword arguments: enums made, 3.0 taken for the integer 3, nothing else changed.

    Raises:
        UnfitError: With what was expected, for the agent to read.
    """
    parameters = inspect.signature(tool).parameters
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        raise UnfitError(f"no argument {unknown[0]!r} (there are: {', '.join(parameters) or 'none'})")
    missing = [
        name for name, each in parameters.items() if each.default is each.empty and name not in arguments
    ]
    if missing:
        raise UnfitError(f"the argument {missing[0]!r} is missing")
    hints = typing.get_type_hints(tool)
    return {name: _fit(value, hints.get(name, Any), name) for name, value in arguments.items()}


def is_table(hint: Any) -> bool:
    """Whether an annotation is a ``TypedDict``."""
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def required(table: Any) -> list[str]:
    """The keys that a ``TypedDict`` must have, also where its annotations are strings."""
    hints = typing.get_type_hints(table, include_extras=True)
    optional = {name for name, hint in hints.items() if "NotRequired" in str(typing.get_origin(hint))}
    return [name for name in hints if name in table.__required_keys__ and name not in optional]


def _fit(value: Any, hint: Any, path: str) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in UNIONS:
        return _fit_any(value, inner, path)
    if origin is Literal:
        return _choose(value, {json.dumps(choice): choice for choice in inner}, path)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choose(value, {json.dumps(choice.value): choice for choice in hint}, path)
    if (origin or hint) is list:
        return [_fit(item, _first(inner), f"{path}[{i}]") for i, item in enumerate(_a(list, value, path))]
    if is_table(hint):
        return _fit_table(value, hint, path)
    if (origin or hint) is dict:
        items = _a(dict, value, path).items()
        return {key: _fit(item, inner[1] if inner else Any, f"{path}.{key}") for key, item in items}
    return _fit_scalar(value, hint, path)


def _fit_any(value: Any, hints: tuple[Any, ...], path: str) -> Any:
    problems = []
    for hint in hints:
        try:
            return _fit(value, hint, path)
        except UnfitError as error:
            problems.append(error)
    raise problems[0]


def _fit_scalar(value: Any, hint: Any, path: str) -> Any:
    if hint is type(None):
        fits = value is None
    elif hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif hint is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    else:
        fits = isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
    if not fits:
        raise UnfitError(f"{path} must be {_KINDS.get(hint, 'null')}, got {_excerpt(value)}")
    return value


def _fit_table(value: Any, hint: Any, path: str) -> dict[str, Any]:
    hints = typing.get_type_hints(hint)
    table = _a(dict, value, path)
    for key in table:
        if key not in hints:
            raise UnfitError(f"{path} has no key {key!r} (there are: {', '.join(hints)})")
    for key in required(hint):
        if key not in table:
            raise UnfitError(f"{path} lacks the key {key!r}")
    return {key: _fit(item, hints[key], f"{path}.{key}") for key, item in table.items()}


def _choose(value: Any, choices: Mapping[str, Any], path: str) -> Any:
    try:
        return choices[json.dumps(value)]
    except KeyError:
        raise UnfitError(f"{path} must be one of {', '.join(choices)}, got {_excerpt(value)}") from None


def _a(kind: type, value: Any, path: str) -> Any:
    if not isinstance(value, kind):
        raise UnfitError(f"{path} must be {'a list' if kind is list else 'an object'}, got {_excerpt(value)}")
    return value


def _first(inner: tuple[Any, ...]) -> Any:
    return inner[0] if inner else Any


def _excerpt(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."
