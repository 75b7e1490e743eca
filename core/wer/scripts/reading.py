"""What a helper script offers, read from its syntax tree: nothing of it is executed or imported here."""

from __future__ import annotations

import ast
import json
import re
import typing
import warnings
from types import NoneType
from typing import Any

from attrs import frozen

from wer.domain.schemas import read_docstring, schema
from wer.errors import DomainError, SkillError
from wer.records import Json, JsonObject, Skill, ToolSpec

PREFIX = "script_"
"""Begins the name of a script's tool, so that it is never taken for one of the environment."""
_MOST = 20_000  # characters
_PATH = re.compile(r"scripts/([a-z][a-z0-9_]{0,40})\.py")
_TEST = re.compile(r"scripts/test_\w+\.py")
_NAMES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (str, int, float, bool, list, dict)},
    "List": list,
    "Dict": dict,
    "Any": Any,
}


@frozen(kw_only=True)
class Script:
    """A helper script that an agent can call.

    Attributes:
        name: Of its file, without the suffix.
        function: Of the file, that is called: ``main``, or the only public one.
        tool: As the agent sees it.
    """

    name: str
    function: str
    source: str
    tool: ToolSpec


def scripts_of(skill: Skill) -> tuple[Script, ...]:
    """Read all scripts of a skill; files ``scripts/test_NAME.py`` are their tests, and no tools.

    Raises:
        SkillError: One of the other files can't be offered to an agent, with the reason.
    """
    return tuple(
        read_script(path, source)
        for path, source in sorted(skill.scripts.items())
        if not _TEST.fullmatch(path)
    )


def read_script(path: str, source: str) -> Script:
    """Read one script: Python with one public, typed, documented function, or with a ``main`` of that kind.

    Raises:
        SkillError: It is something else.
    """
    named = _PATH.fullmatch(path)
    if named is None or _TEST.fullmatch(path):
        raise SkillError(f"{path!r} is no helper script. Name it scripts/NAME.py, with a NAME in lower case.")
    function = _function(path, _parsed(path, source))
    text = ast.get_docstring(function)
    if not text:
        raise SkillError(f"{path}: {function.name} has no docstring. Say what it does and what it returns.")
    if function.returns is None:
        raise SkillError(f"{path}: {function.name} does not say what it returns. Annotate it.")
    summary, described = read_docstring(text)
    tool = ToolSpec(
        name=PREFIX + named[1], description=summary, parameters=_parameters(path, function, described)
    )
    try:
        json.dumps([tool.description, tool.parameters], allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise SkillError(
            f"{path}: a docstring, default or Literal of {function.name} has no place in JSON: {error}."
        ) from None
    return Script(name=named[1], function=function.name, source=source, tool=tool)


def check_tests(path: str, tests: str) -> None:
    """Demand that a file of tests asserts something as soon as it is run.

    Raises:
        SkillError: It is no Python, or asserts nothing.
    """
    if not any(isinstance(node, ast.Assert) for node in _parsed(path, tests).body):
        raise SkillError(f"{path} asserts nothing. Write lines such as: assert add(1, 2) == 3")


def _parsed(path: str, source: str) -> ast.Module:
    if len(source) > _MOST:
        raise SkillError(f"{path} has {len(source)} characters, at most {_MOST} are read. Write less.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SkillError(f"{path} is no Python: {error}. Mend it.") from None


def _function(path: str, module: ast.Module) -> ast.FunctionDef:
    public = [
        node
        for node in module.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_")
    ]
    chosen = [node for node in public if node.name == "main"] or public
    if len(chosen) != 1 or not isinstance(chosen[0], ast.FunctionDef):
        found = ", ".join(node.name for node in public) or "none"
        raise SkillError(
            f"{path} must have exactly one public function, or a main, that is not async (found: {found}). "
            "Begin the names of the others with an underscore."
        )
    return chosen[0]


def _parameters(path: str, function: ast.FunctionDef, described: typing.Mapping[str, str]) -> JsonObject:
    given = function.args
    if given.posonlyargs or given.vararg or given.kwarg:
        raise SkillError(f"{path}: {function.name} takes arguments that are not named. Name each of them.")
    defaults: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
    pairs = [
        *zip(given.args, [*defaults, *given.defaults], strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    properties = {arg.arg: _property(path, function, arg, described) for arg, _ in pairs}
    for arg, default in pairs:
        if isinstance(default, ast.Constant) and isinstance(default.value, (str, bool, int, float)):
            properties[arg.arg]["default"] = default.value
    needed = [arg.arg for arg, default in pairs if default is None]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _property(
    path: str, function: ast.FunctionDef, arg: ast.arg, described: typing.Mapping[str, str]
) -> dict[str, Json]:
    full = f"{path}: {function.name}({arg.arg})"
    if arg.annotation is None:
        raise SkillError(f"{full} has no annotation. Give one, such as str or list[int].")
    try:
        found = dict(schema(_hint(arg.annotation), full))
    except (DomainError, TypeError, RecursionError) as error:
        raise SkillError(f"{full}: {error}") from None
    if arg.arg in described:
        found["description"] = described[arg.arg]
    return found


def _hint(node: ast.expr) -> Any:
    """The type that an annotation of plain names means.

    Raises:
        DomainError: It has other names.
    """
    match node:
        case ast.Constant(value=None):
            return NoneType
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMES:
            return _NAMES[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return typing.Union[_hint(left), _hint(right)]  # noqa: UP007 - made here
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            return _parametrised(name, inside.elts if isinstance(inside, ast.Tuple) else [inside], node)
    raise DomainError(
        f"the annotation {ast.unparse(node)} has no JSON schema. Use str, int, list[str] and the like."
    )


def _parametrised(name: str, inside: list[ast.expr], node: ast.expr) -> Any:
    if name == "Literal" and all(isinstance(each, ast.Constant) for each in inside):
        return typing.Literal[tuple(each.value for each in inside)]  # type: ignore[attr-defined]
    if name == "Optional" and len(inside) == 1:
        return typing.Optional[_hint(inside[0])]  # noqa: UP045 - made here
    if name == "Union":
        return typing.Union[tuple(map(_hint, inside))]  # noqa: UP007
    if _NAMES.get(name) is list and len(inside) == 1:
        return list[_hint(inside[0])]  # type: ignore[misc]
    if _NAMES.get(name) is dict and len(inside) == 2:
        return dict[_hint(inside[0]), _hint(inside[1])]  # type: ignore[misc]
    raise DomainError(
        f"the annotation {ast.unparse(node)} has no JSON schema. Use str, int, list[str] and the like."
    )
