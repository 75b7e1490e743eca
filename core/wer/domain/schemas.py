"""Tools from a class: its public methods with their annotations and docstrings, as JSON schemas."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, Literal

from wer.errors import DomainError
from wer.records import Json, JsonObject, ToolSpec
from wer_sandbox.signatures import UNIONS, is_table, required
from wer_sandbox.state import tools

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_KNOWN = "str, int, float, bool, list[...], dict[str, ...], Literal, Enum, TypedDict, and unions of these with None"
_NOT_PLAIN = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
_SECTION = re.compile(r"^(Args|Arguments|Returns?|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+)(?:\s*\([^)]*\))?:\s*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def tool_specs(cls: type) -> tuple[ToolSpec, ...]:
    """Describe every public method of a class, in the order of the class.

    Raises:
        DomainError: There is none, or one lacks annotations or a docstring, or takes what JSON has
            no word for; the message names it.
    """
    found = tuple(_tool(f"{cls.__name__}.{name}", name, method) for name, method in tools(cls).items())
    if not found:
        raise DomainError(f"{cls.__name__} has no public method, so an agent can do nothing. Give it some.")
    return found


def _tool(full: str, name: str, method: Callable[..., Any]) -> ToolSpec:
    text = inspect.getdoc(method)
    if not text:
        raise DomainError(
            f"{full} has no docstring, and agents need to know what it does. Write one; or begin the name with "
            "an underscore, if it is no tool."
        )
    if any(is_one(method) for is_one in _NOT_PLAIN):
        raise DomainError(f"{full} is asynchronous or a generator. Make it a plain method that returns.")
    summary, described = read_docstring(text)
    try:
        hints = typing.get_type_hints(method)
    except (NameError, SyntaxError, TypeError, AttributeError) as error:
        raise DomainError(
            f"the annotations of {full} can't be read: {error}. Import what they name in the module itself."
        ) from error
    _, *parameters = inspect.signature(method).parameters.values()
    properties = {
        each.name: _parameter(f"{full}({each.name})", each, hints, described.get(each.name, ""))
        for each in parameters
    }
    needed = [each.name for each in parameters if each.default is each.empty]
    schema = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    return ToolSpec(name=name, description=summary, parameters=schema)


def _parameter(
    full: str, parameter: inspect.Parameter, hints: Mapping[str, Any], description: str
) -> JsonObject:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise DomainError(f"{full} is not passed by name. Name each parameter of a tool.")
    if parameter.name not in hints:
        raise DomainError(f"{full} has no annotation, and its JSON schema is made of it. Give one: {_KNOWN}.")
    found = dict(schema(hints[parameter.name], full))
    if description:
        found["description"] = description
    if parameter.default is not parameter.empty and parameter.default is not None:
        default = parameter.default
        found["default"] = default.value if isinstance(default, Enum) else default
        try:
            json.dumps(found, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DomainError(f"the default of {full} is no JSON: {error}. None is always one.") from error
    return found


def schema(hint: Any, full: str) -> JsonObject:
    """The JSON schema of an annotation.

    Args:
        full: What is annotated, for the message.

    Raises:
        DomainError: It is none that JSON has a word for.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if origin in UNIONS:
        return _union([schema(each, full) for each in inner])
    if origin is Literal:
        return _choice(inner)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([choice.value for choice in hint])
    if is_table(hint):
        return _table(hint, full)
    if (origin or hint) is list:
        return {"type": "array", "items": schema(inner[0], full) if inner else {}}
    if (origin or hint) is dict and (not inner or inner[0] is str):
        return (
            {"type": "object", "additionalProperties": schema(inner[1], full)}
            if inner
            else {"type": "object"}
        )
    raise DomainError(f"{full} is annotated {hint!r}, which is no JSON. Use {_KNOWN}.")


def _union(schemas: list[JsonObject]) -> JsonObject:
    if all(found.keys() == {"type"} for found in schemas):
        return {"type": [found["type"] for found in schemas]}
    return {"anyOf": schemas}


def _choice(values: typing.Sequence[Json]) -> JsonObject:
    kinds = {_SCALARS.get(type(value)) for value in values}
    [kind] = kinds if len(kinds) == 1 else [None]
    return {"enum": list(values)} if kind is None else {"type": kind, "enum": list(values)}


def _table(table: Any, full: str) -> JsonObject:
    properties = {key: schema(each, f"{full}[{key!r}]") for key, each in typing.get_type_hints(table).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": required(table),
        "additionalProperties": False,
    }


def read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """Split a docstring in Google's style into what a tool does and what each argument means.

    Sections other than ``Args:`` are left out but ``Returns:``, which tells an agent what to expect.
    """
    before, *rest = _SECTION.split(inspect.cleandoc(text))
    sections = dict(zip(rest[::2], map(inspect.cleandoc, rest[1::2]), strict=True))
    returns = sections.get("Returns") or sections.get("Return")
    summary = before.strip() + (f"\n\nReturns: {_joined(returns)}" if returns else "")
    arguments = sections.get("Args") or sections.get("Arguments") or ""
    return summary, {name.lstrip("*"): _joined(meaning) for name, meaning in _ENTRY.findall(arguments)}


def _joined(text: str) -> str:
    return " ".join(text.split())
