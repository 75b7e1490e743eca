"""One episode's world: the instances of the involved classes, called by name, exported as data."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from wer_bfcl_domain.canonical import Exporter, public
from wer_bfcl_domain.limits import refuse_huge_arithmetic
from wer_sandbox.limits import TooMuch, cpu_limit

TEXT_LIMIT = 1_000_000
"""Characters of one result; far beyond any of the benchmark's."""


class World:
    """The instances behind one task's tools.

    Made once in the server; every episode is a fork of it and begins with `reset`.
    """

    exposed: ClassVar[tuple[str, ...]] = ("reset", "call", "export")

    def __init__(self, classes: Mapping[str, type[Any]]) -> None:
        self._classes = classes
        self._names = {name: _tool_names(kind) for name, kind in classes.items()}
        self._instances: dict[str, Any] = {}
        self._tools: dict[str, Callable[..., Any]] = {}

    def reset(self, initial_config: Mapping[str, Any], involved_classes: Sequence[str]) -> None:
        """Put the world in place as the official runner does.

        Args:
            initial_config: Scenario by class, which becomes the world's; ``MathAPI`` has no state and gets none.
            involved_classes: In the task's order: of two tools with one name, the later wins.
        """
        self._instances = {name: self._classes[name]() for name in involved_classes}
        self._tools = {}
        for name, instance in self._instances.items():
            if hasattr(instance, "_load_scenario"):
                instance._load_scenario(initial_config.get(name, {}), long_context=False)
            self._tools |= {tool: getattr(instance, tool) for tool in self._names[name]}

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool; whatever goes wrong in it is the answer, as in the official runner.

        Returns:
            ``text``, what the model reads, and ``ok``, False when the tool refused or raised.
        """
        tool = self._tools.get(name)
        if tool is None:
            return _failed(f"name {name!r} is not defined")
        try:
            refuse_huge_arithmetic(name, arguments)
            with cpu_limit():
                result = tool(**arguments)
                text = _text(result)
        except (Exception, TooMuch) as error:
            return _failed(str(error))
        if len(text) > TEXT_LIMIT:
            return _failed(f"the result has more than {TEXT_LIMIT} characters")
        return {"text": text, "ok": not (isinstance(result, dict) and "error" in result)}

    def export(self) -> dict[str, Any]:
        """The public attributes of every instance, by class."""
        exporter = Exporter()
        return {
            name: {attribute: exporter.canonical(value) for attribute, value in public(instance).items()}
            for name, instance in self._instances.items()
        }


def _tool_names(kind: type[Any]) -> tuple[str, ...]:
    """The public methods of a class, looked up before the fork: an episode copies every page that it touches."""
    functions = inspect.getmembers(kind, predicate=inspect.isroutine)
    return tuple(name for name, _ in functions if not name.startswith("_"))


def _failed(why: str) -> dict[str, Any]:
    return {"text": f"Error during execution: {why}", "ok": False}


def _text(result: object) -> str:
    """Say a result as the official runner does: text as it is, objects as JSON, else ``str``."""
    if type(result) is str:
        return result
    if type(result) is dict:
        try:
            return json.dumps(result)
        except (TypeError, ValueError, RecursionError):
            return str(result)
    return str(result)
