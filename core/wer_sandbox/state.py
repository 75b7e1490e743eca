"""A user's class as the world of an episode: its public methods are the tools, its public attributes the state.

``module:Class`` arrives in the environment variable ``WER_STATE``; the rest is an ordinary domain of
`wer_sandbox`. Whatever the class does wrong is answered as data, for the host to say whose fault it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import math
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar

from wer_sandbox.limits import TooMuch, cpu_limit
from wer_sandbox.signatures import UnfitError, fitted

VARIABLE = "WER_STATE"
EXPORT = "export"
TEXT_LIMIT = 1_000_000
"""Characters of one result, and of one exported state."""
_INTEGER_BITS = 4096
"""Python writes no integers to JSON that are much longer."""


class State:
    """What an agent acts on in one episode: write a class of it, and its public methods are the tools.

    An instance is made for each episode, with the task's ``state`` as keyword arguments. Its
    public attributes are what a check sees, or what its method ``export`` returns. Without an
    ``__init__`` of its own, every keyword becomes a public attribute.
    """

    def __init__(self, **state: Any) -> None:
        vars(self).update(state)


def tools(cls: type) -> dict[str, Callable[..., Any]]:
    """The public methods of a class, in the order in which they are written, those of its bases first."""
    found: dict[str, Callable[..., Any]] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items() if base not in (object, State) else ():
            if inspect.isfunction(member) and not name.startswith("_") and name != EXPORT:
                found[name] = member
            else:
                found.pop(name, None)
    return found


def world() -> World:
    """Import the user's class once, so that forked episodes share what it loaded."""
    from wer_sandbox import placeholder

    placeholder.install()
    module, _, name = os.environ[VARIABLE].partition(":")
    return World(functools.reduce(getattr, name.split("."), importlib.import_module(module)))  # type: ignore[arg-type]


class World:
    """One instance an episode."""

    exposed: ClassVar[tuple[str, ...]] = ("reset", "call", "export")

    def __init__(self, cls: type) -> None:
        self._class = cls
        self._tools = tools(cls)
        self._state: Any = None

    def reset(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Make the instance; ``problem`` says why it could not be made, or is None."""
        try:
            self._state = self._class(**state)
        except (Exception, SystemExit) as error:
            return {"problem": f"{self._class.__name__}(**state) raised {type(error).__name__}: {error}"}
        return {"problem": None}

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool; an exception is the answer.

        Returns:
            ``text``, what the model reads, and ``ok``, False when the tool refused or raised.
        """
        if name not in self._tools:
            return _failed(f"there is no tool {name!r} (tools: {', '.join(self._tools)})")
        tool = getattr(self._state, name)
        try:
            with cpu_limit():
                result = tool(**fitted(tool, arguments))
                text = (
                    result if isinstance(result, str) else json.dumps(result, default=str, ensure_ascii=False)
                )
        except (UnfitError, TooMuch) as error:
            return _failed(str(error))
        except BaseException as error:
            return _failed(_words(error))
        if len(text) > TEXT_LIMIT:
            return _failed(f"the result has more than {TEXT_LIMIT} characters")
        return {"text": text, "ok": True}

    def export(self) -> dict[str, Any]:
        """The state as JSON under ``state``; or ``problem``, what of it is no JSON.

        A state that the agent made too large or too deep is ``{"$too_large": ...}``: no
        expectation looks like that.
        """
        try:
            with cpu_limit():
                state = plain(self._public(), "state")
                size = len(json.dumps(state))
        except (RecursionError, MemoryError, TooMuch) as error:
            return {"state": {"$too_large": str(error)}}
        except Exception as error:
            return {"problem": f"{type(error).__name__}: {error}"}
        return {"state": state if size <= TEXT_LIMIT else {"$too_large": f"{size} characters"}}

    def _public(self) -> Any:
        if hasattr(self._state, EXPORT):
            return self._state.export()
        return {name: value for name, value in vars(self._state).items() if not name.startswith("_")}


def plain(value: Any, path: str) -> Any:
    """Write a value as JSON: tuples as lists, sets sorted, dataclasses as objects, enums by value.

    Raises:
        TypeError: JSON has no word for it; the message names the place.
    """
    if isinstance(value, Enum):
        return plain(value.value, path)
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        return {"$int": f"{value.bit_length()} bits"}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field.name for field in dataclasses.fields(value))
        return {name: plain(getattr(value, name), f"{path}.{name}") for name in fields}
    if isinstance(value, Mapping):
        return {_key(key, path): plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item, path) for item in value), key=json.dumps)
    raise TypeError(f"{path} is of type {type(value).__name__}, which is no JSON")


def _key(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, (str, int)):
        raise TypeError(f"{path} has a key of type {type(key).__name__}; JSON has string keys only")
    return str(key)


def _words(error: BaseException) -> str:
    """The author's words where there are any; of a failed look-up they are only the key."""
    said = ""
    with contextlib.suppress(Exception):  # an exception may fail to say what it is
        said = str(error)
    if isinstance(error, LookupError) or not said:
        return f"{type(error).__name__}: {said}".rstrip(": ")
    return said


def _failed(why: str) -> dict[str, Any]:
    return {"text": f"Error: {why}", "ok": False}
