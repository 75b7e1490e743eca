"""The tools of an episode as an agent of the user's own gets them: callables made from their JSON schemas."""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Optional, Union

from wer import chat
from wer.records import Json, JsonObject, Observation, ToolCall, ToolSpec
from wer.tables import nearest

Call = Callable[[ToolCall], Observation]
"""Runs one call and waits for it."""
CallLater = Callable[[ToolCall], Awaitable[Observation]]
"""Likewise, as a coroutine."""


class EpisodeOver(BaseException):
    """A tool was called after the episode's end. Not an `Exception`, which an agent may take for a tool's failure."""


class Tools(Mapping[str, Callable[..., Any]]):
    """An episode's tools by name: functions with a name, a docstring, typed parameters and a JSON schema.

    They are coroutines where the agent is one, else plain functions. What a tool answers is a
    text; what goes wrong in it is one too, for the agent to read, and nothing is raised. None for
    a parameter that is not needed is the same as leaving it out: frameworks fill it in.

        for tool in tools.values(): print(tool.__name__, tool.__doc__, tool.parameters)
        await tools["refund"](order_id="1001", amount=39.9)
        client.chat.completions.create(..., tools=tools.openai())
        await tools.call(name, arguments)       # as a model wrote them: a table, or JSON text

    Args:
        call: Runs a call and notes it.
    """

    def __init__(self, specs: Sequence[ToolSpec], call: Call | CallLater) -> None:
        self._specs = tuple(specs)
        self._call = call
        self._later = inspect.iscoroutinefunction(call)
        self._made = {spec.name: self._function(spec) for spec in specs}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The tool of that name.

        Raises:
            KeyError: There is none, with the nearest.
        """
        if name not in self._made:
            raise KeyError(
                f"no tool {name!r}{nearest(name, self._made) or '.'} There are {', '.join(self._made)}."
            )
        return self._made[name]

    def __getattr__(self, name: str) -> NoReturn:
        """No tool is an attribute: an environment's names may be those of this class.

        Raises:
            AttributeError: With how a tool is named.
        """
        raise AttributeError(f"no {name!r} here: a tool is named in brackets, as tools[{name!r}](...)")

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the environment."""
        return iter(self._made)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._made)

    def openai(self) -> list[dict[str, Json]]:
        """The tools as chat completions take them."""
        return chat.tools_to_wire(self._specs)

    def call(self, name: str, arguments: str | JsonObject | None) -> Any:
        """Call a tool as a model asked for it; awaited where the tools are coroutines.

        Args:
            arguments: A table, or its JSON, or nothing; anything else is answered with what is wrong.
        """
        table, problem = _table(arguments)
        if self._later:
            return self._answer_later(ToolCall(name=name, arguments=table), problem)
        return problem or self._text(self._call(ToolCall(name=name, arguments=table)))

    async def _answer_later(self, call: ToolCall, problem: str) -> str:
        return problem or self._text(await self._call(call))  # type: ignore[misc]

    def _text(self, observation: Any) -> str:
        return str(observation.text)

    def _function(self, spec: ToolSpec) -> Callable[..., Any]:
        names = _ordered(spec.parameters)
        optional = set(names) - set(spec.parameters.get("required") or ())

        def arguments(given: Sequence[Json], named: JsonObject) -> JsonObject:
            if len(given) > len(names):
                raise TypeError(f"{spec.name} takes {len(names)} arguments, got {len(given)}")
            table = {**dict(zip(names, given, strict=False)), **named}
            return {name: value for name, value in table.items() if value is not None or name not in optional}

        made: Any
        if self._later:

            async def tool(*given: Json, **named: Json) -> str:
                return str(await self.call(spec.name, arguments(given, named)))

            made = tool
        else:

            def tool_now(*given: Json, **named: Json) -> str:
                return str(self.call(spec.name, arguments(given, named)))

            made = tool_now
        signature = _signature(spec.parameters)
        made.__name__ = made.__qualname__ = spec.name
        made.__doc__ = spec.description
        made.parameters = dict(spec.parameters)
        if signature is not None:
            made.__signature__ = signature
            made.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
            made.__annotations__["return"] = str
        return made  # type: ignore[no-any-return]


def _table(arguments: str | JsonObject | None) -> tuple[JsonObject, str]:
    """Read arguments, or say what is wrong with them."""
    if isinstance(arguments, Mapping):
        try:
            arguments = json.dumps(dict(arguments), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            return {}, f"Error: the arguments are no JSON: {error}"
    if not (arguments is None or isinstance(arguments, str)):
        return {}, "Error: the arguments are no JSON object"
    try:
        table = chat.loads(arguments or "{}")
    except ValueError as error:
        return {}, f"Error: the arguments are not JSON: {error}"
    return (table, "") if isinstance(table, dict) else ({}, "Error: the arguments are no JSON object")


def _ordered(schema: JsonObject) -> list[str]:
    """The parameters of a schema, those that are needed first."""
    needed = schema.get("required") or ()
    return sorted(schema.get("properties") or {}, key=lambda name: name not in needed)


def _signature(schema: JsonObject) -> inspect.Signature | None:
    """The parameters of a schema; None when a name is none of Python's."""
    properties: Mapping[str, Json] = schema.get("properties") or {}
    names = _ordered(schema)
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return None
    needed = schema.get("required") or ()
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=annotation(properties[name])
            if name in needed
            else Optional[annotation(properties[name])],  # noqa: UP045
            default=inspect.Parameter.empty if name in needed else _default(properties[name]),
        )
        for name in names
    ]
    return inspect.Signature(parameters, return_annotation=str)


def _default(schema: Json) -> Json:
    return schema.get("default") if isinstance(schema, Mapping) else None


def annotation(schema: Json) -> Any:
    """The type that a JSON schema stands for; `Any` where Python has no word for it."""
    if not isinstance(schema, Mapping):
        return Any
    if isinstance(schema.get("enum"), Sequence) and schema["enum"]:
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(annotation({**schema, "type": each}) for each in kind)] if kind else Any  # noqa: UP007
    if kind == "array":
        return list[annotation(schema.get("items"))]  # type: ignore[misc]
    if kind == "object":
        return dict[str, Any]
    return _TYPES.get(str(kind), Any)


_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
}
