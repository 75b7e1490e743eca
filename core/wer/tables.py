"""Tables of a configuration file become checked attrs records, or an error that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
from cattrs import (
    AttributeValidationNote,
    BaseValidationError,
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.cols import (
    homogenous_tuple_structure_factory,
    is_mapping,
    list_structure_factory,
    mapping_structure_factory,
)
from cattrs.gen import make_dict_structure_fn

from wer.errors import ConfigError
from wer.records import Json

T = TypeVar("T")


class _WrongTypeError(Exception):
    """A value of another type than its field's; whoever reports it knows the path."""

    def __init__(self, value: Json, expected: str) -> None:
        super().__init__(
            f"is {value!r} ({_KINDS.get(type(value), type(value).__name__)}), expected {expected}"
        )


_KINDS: Mapping[type, str] = {
    dict: "a table",
    list: "a list",
    tuple: "a list",
    str: "a string",
    bool: "a boolean",
}


def structure(cls: type[T], mapping: Mapping[str, Json], *, where: str) -> T:
    """Make the record `cls` of a table: no unknown keys, no conversion but int to float, list to tuple.

    Args:
        cls: An attrs class; its fields may be attrs classes, for nested tables.
        where: Dotted name of the table for messages, such as ``executor_options``;
            empty for the top level.

    Raises:
        ConfigError: One line for each thing that is wrong with the table.
    """
    where = where.strip("[]")
    try:
        return _CONVERTER.structure(mapping, cls)
    except (BaseValidationError, _WrongTypeError) as error:
        lines = dict.fromkeys(_problems(error, where))
        raise ConfigError("\n".join(lines)) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word closest to a misspelt one as ``; did you mean 'mode'?``, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _problems(error: BaseException, path: str) -> Iterator[str]:
    """Say each leaf of cattrs' tree of errors in one line, with its dotted path."""
    if isinstance(error, BaseValidationError):
        for inner in error.exceptions:
            yield from _problems(inner, _below(path, inner))
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [attribute.name for attribute in attrs.fields(error.cl)]
        for key in sorted(map(str, error.extra_fields)):
            hint = nearest(key, known) or "."
            yield f"unknown key {key!r} {_table(path)}{hint} Known keys: {', '.join(known) or 'none'}."
    elif isinstance(error, KeyError):
        table, _, key = path.rpartition(".")
        yield f"missing key {key!r} {_table(table)}. It has no default, so give it a value."
    elif isinstance(error, _WrongTypeError):
        yield f"{path or 'the configuration'} {error}."
    else:
        yield f"{path}: {error}" if path else str(error)


def _below(path: str, error: BaseException) -> str:
    """Extend a path by the field or item in which an inner error arose."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f"{path}.{note.name}" if path else note.name
        if isinstance(note, IterableValidationNote):
            return f"{path}[{note.index}]" if isinstance(note.index, int) else f"{path}.{note.index}"
    return path


def _table(path: str) -> str:
    return f"in [{path}]" if path else "at the top level"


def _strict_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)

    def scalar(convert: type, kinds: tuple[type, ...], expected: str) -> Callable[[Any, Any], Any]:
        def hook(value: Any, _: Any) -> Json:
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise _WrongTypeError(value, expected)
            if isinstance(value, str) and "\0" in value:
                raise _WrongTypeError(value, "a string without NUL characters")
            return convert(value)

        return hook

    def only(kinds: tuple[type, ...], expected: str, factory: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(cls: Any, converter: Converter) -> Callable[[Any, Any], Any]:
            inner = factory(cls, converter)

            def hook(value: Json, cls: Any) -> Any:
                if not isinstance(value, kinds):
                    raise _WrongTypeError(value, expected)
                if isinstance(value, (list, tuple)) and "" in value:
                    raise _WrongTypeError(value, "a list without empty strings")
                return inner(value, cls)

            return hook

        return guarded

    def choice(cls: Any, _: Converter) -> Callable[[Any, Any], Any]:
        def hook(value: Json, _: Any) -> Json:
            if value not in get_args(cls):
                raise _WrongTypeError(value, " or ".join(map(repr, get_args(cls))))
            return value

        return hook

    def record(cls: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        return make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)

    def is_homogeneous_tuple(cls: Any) -> bool:
        return get_origin(cls) is tuple and get_args(cls)[1:] == (...,)

    def is_list(cls: Any) -> bool:
        return get_origin(cls) is list

    converter.register_structure_hook(bool, scalar(bool, (bool,), "true or false"))
    converter.register_structure_hook(int, scalar(int, (int,), "an integer"))
    converter.register_structure_hook(float, scalar(float, (float, int), "a number"))
    converter.register_structure_hook(str, scalar(str, (str,), "a string"))
    hooks: tuple[tuple[Callable[[Any], bool], Callable[..., Any]], ...] = (
        (is_mapping, only((Mapping,), "a table", mapping_structure_factory)),
        (is_list, only((list, tuple), "a list", list_structure_factory)),
        (is_homogeneous_tuple, only((list, tuple), "a list", homogenous_tuple_structure_factory)),
        (lambda cls: get_origin(cls) is Literal, choice),
        (attrs.has, only((Mapping,), "a table", record)),
    )
    for predicate, factory in hooks:
        converter.register_structure_hook_factory(predicate)(factory)
    return converter


_CONVERTER = _strict_converter()
