"""Reads ``tasks.jsonl``: a task a line, checked, with every fault named by its line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from wer.errors import ConfigError, TaskError
from wer.records import Json, JsonObject, Split, content_hash
from wer.tables import structure


@frozen(kw_only=True)
class Call:
    """A call of a reference, as it is written in the file."""

    name: str
    arguments: Mapping[str, Json] = field(factory=dict)


@frozen(kw_only=True)
class Row:
    """One line.

    Attributes:
        turns: What the user says; never empty.
        state: Keyword arguments of the class.
        expect: Any JSON, for the check alone.
        reference: Calls by turn; None where the line has none.
        domain: Empty where the line names none.
        split: None where the line leaves it to the seed.
    """

    id: str
    turns: tuple[str, ...]
    state: JsonObject
    expect: Json
    reference: tuple[tuple[Call, ...], ...] | None
    domain: str
    split: Split | None


@frozen(kw_only=True)
class _Written:
    id: str
    query: str = ""
    turns: tuple[str, ...] = ()
    state: Mapping[str, Json] = field(factory=dict)
    expect: Json = None
    reference: Json = None
    domain: str = ""
    split: str = ""


def read_tasks(path: Path) -> tuple[Row, ...]:
    """Read a file of tasks.

    Raises:
        TaskError: It can't be read, has no task, or has faulty ones, each with its line number.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise TaskError(
            f"cannot read the tasks: {error}. Expected a UTF-8 file with a JSON object a line."
        ) from error
    rows: list[Row] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(line)
            first = seen.setdefault(row.id, number)
            if first != number:
                raise ConfigError(f"the id {row.id!r} is also that of line {first}; ids are unique")
            rows.append(row)
        except ConfigError as error:
            faults += [f"{path}, line {number}: {problem}" for problem in str(error).splitlines()]
    if faults:
        raise TaskError("\n".join(faults))
    if not rows:
        raise TaskError(f"{path} has no task. Write a JSON object a line, with at least id and query.")
    return tuple(rows)


def with_splits(rows: Sequence[Row], *, seed: int) -> tuple[Row, ...]:
    """Give every row of a domain a split: of those that have none 60 %, rounded down, are for training, by the seed.

    By hash, so that the split is the same in every version of Python. Two rows or more have both splits. With the
    default of `refinement.holdout`, a third of the training tasks, that is 40/20/40.
    """
    open_ = sorted(
        (row.id for row in rows if row.split is None), key=lambda id_: content_hash(["split", seed, id_])
    )
    train = frozenset(open_[: len(open_) * 3 // 5])
    return tuple(
        row if row.split else evolve(row, split="train" if row.id in train else "test") for row in rows
    )


def _row(line: str) -> Row:
    try:
        table: Any = json.loads(line, parse_constant=_no_constant)
        json.dumps(table, allow_nan=False, ensure_ascii=False).encode()  # 1e999, and half of an emoji
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError("not a JSON object; expected {...} with at least id and query")
    written = structure(_Written, table, where="")
    turns = written.turns or (written.query,)
    if bool(written.query) == bool(written.turns) or not all(turn.strip() for turn in turns):
        raise ConfigError("expected either query, what the user says, or turns, a list of it; not empty")
    if not written.id.strip():
        raise ConfigError("the id is empty")
    for name, word in (("id", written.id), ("domain", written.domain)):
        if word != word.strip() or not word.isprintable():
            raise ConfigError(f"{name} is {word!r}; expected printable characters, and no space around them")
    if written.split not in ("", "train", "test"):
        raise ConfigError(f"split is {written.split!r}; expected train or test, or leave it out")
    return Row(
        id=written.id,
        turns=turns,
        state=written.state,
        expect=written.expect,
        reference=None if written.reference is None else _reference(written.reference, turns),
        domain=written.domain,
        split=written.split or None,  # type: ignore[arg-type]
    )


def _reference(value: Json, turns: Sequence[str]) -> tuple[tuple[Call, ...], ...]:
    if not isinstance(value, list):
        raise ConfigError("reference is no list; expected calls, or a list of calls for each turn")
    by_turn = value if value and all(isinstance(item, list) for item in value) else [value]
    if len(by_turn) > len(turns) or (len(by_turn) == 1 and by_turn[0] is value and len(turns) > 1):
        raise ConfigError(f"reference must be a list of {len(turns)} lists of calls, one for each turn")
    return tuple(tuple(_calls(calls)) for calls in by_turn)


def _calls(calls: Sequence[Json]) -> Iterator[Call]:
    for call in calls:
        if not isinstance(call, dict):
            raise ConfigError(
                f"the reference has {call!r}; expected calls like {{'name': ..., 'arguments': {{...}}}}"
            )
        yield structure(Call, call, where="reference")


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
