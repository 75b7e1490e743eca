"""Matched pairs: two rollouts of one task of which one passed, and where they part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wer.records import JsonObject
from wer.viewing.aligning import aligned, divergence
from wer.viewing.reading import PAGE, NotThere, Query, Reading, clip, finite, line, number, page
from wer.viewing.rollouts import events_of, head, read, task_head, text_limit, verdicts

_ROWS = 160
_SEEN = 12
"""Rollouts of a state's evidence that are looked at for a pair."""


def pair_list(run: Reading, query: Query) -> JsonObject:
    """Pairs: those that revisions were written from, or tasks that two conditions end differently."""
    if query.get("base"):
        return _between(run, query)
    return _evidence(run, query)


def pair(run: Reading, query: Query) -> JsonObject:
    """Two rollouts of one task, row by row, from the beginning.

    Raises:
        NotThere: A rollout is not there, or they are of different tasks.
    """
    (left, task), (right, other) = read(run, query.get("a", "")), read(run, query.get("b", ""))
    if task.key != other.key:
        raise NotThere(
            f"these rollouts are of different tasks, {line(task.id)} and {line(other.id)}: only rollouts of one "
            "task can be matched."
        )
    sides = list(events_of(left)), list(events_of(right))
    rows, first = aligned(*sides), divergence(*sides)
    offset = number(query, "offset", max(0, first - 3))
    shown = rows[offset : offset + _ROWS]
    limit = text_limit([*shown, *shown])
    return {
        "task": task_head(task),
        "left": head(run, left),
        "right": head(run, right),
        "first": first,
        "rows": [[_event(side, at, limit) for side, at in zip(sides, row, strict=True)] for row in shown],
        "total": len(rows),
        "offset": offset,
        "limit": _ROWS,
    }


def _event(side: Sequence[tuple[str, str]], at: int | None, limit: int) -> JsonObject | None:
    return None if at is None else {"kind": side[at][0], **clip(side[at][1], limit), "at": at}


def _evidence(run: Reading, query: Query) -> JsonObject:
    """The pairs of states, oldest first, each with what was written on seeing it."""
    offset = number(query, "offset")
    states = run.ask(
        "select s.id, s.evidence, s.round, s.phase, t.id as task from states s join tasks t on t.key = s.task_key "
        "where json_array_length(s.evidence) > 1 order by s.rowid limit :page offset :offset",
        page=PAGE,
        offset=offset,
    )
    evidence = {row.id: json.loads(row.evidence) for row in states}
    known = verdicts(run, [key for keys in evidence.values() for key in keys[:_SEEN]])
    written = _written(run, list(evidence))
    rows = [
        {
            "task": line(row.task),
            "round": row.round,
            "phase": row.phase,
            "state": row.id,
            "rollouts": _matched([known[key] for key in evidence[row.id][:_SEEN] if key in known]),
            **written.get(row.id, {"written": 0, "best": None, "stage": None}),
        }
        for row in states
    ]
    total = run.one("select count(*) from states s where json_array_length(s.evidence) > 1")[0]
    return page([row for row in rows if len(row["rollouts"]) == 2], total=total, offset=offset)


def _matched(rollouts: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """A success and a failure, in this order; where there are not both, the first two."""
    passed, failed = ([each for each in rollouts if each["passed"] is way] for way in (True, False))
    return [passed[0], failed[0]] if passed and failed else rollouts[:2]


def _written(run: Reading, states: Sequence[str]) -> dict[str, JsonObject]:
    if not states:
        return {}
    rows = run.ask(
        "select state_id, min(stage) as stage, count(*) as written, max(json_extract(reward, '$.total')) as best "
        "from candidates where state_id in :states group by state_id",
        states=list(states),
    )
    return {
        row.state_id: {"written": row.written, "best": finite(row.best), "stage": row.stage} for row in rows
    }


def _between(run: Reading, query: Query) -> JsonObject:
    """The trials that one condition passes and another, on the same task and seed, does not."""
    offset = number(query, "offset")
    conditions = {"base": query["base"], "better": query.get("better", "")}
    passed = "json_extract({}.json, '$.verdict.passed')"
    source = (
        "from results a join results b on a.task_key = b.task_key and a.trial = b.trial "
        "join rollouts x on x.key = a.rollout join rollouts y on y.key = b.rollout "
        "join tasks t on t.key = a.task_key where a.condition = :base and b.condition = :better "
        f"and a.rollout != b.rollout and {passed.format('x')} != {passed.format('y')}"
    )
    wanted = {"mended": 0, "broken": 1}.get(query.get("outcome", ""))
    here = "" if wanted is None else f" and {passed.format('x')} = {wanted}"
    rows: Sequence[Any] = run.ask(
        f"select a.rollout as base, b.rollout as better, a.trial, t.id as task {source}{here} "
        "order by a.rowid limit :page offset :offset",
        page=PAGE,
        offset=offset,
        **conditions,
    )
    counts = dict(run.ask(f"select {passed.format('x')}, count(*) {source} group by 1", **conditions))
    known = verdicts(run, [key for row in rows for key in (row.base, row.better)])
    listed = [
        {"task": line(row.task), "trial": row.trial, "rollouts": [known[row.base], known[row.better]]}
        for row in rows
    ]
    mended, broken = counts.get(0, 0), counts.get(1, 0)
    total = mended + broken if wanted is None else (mended, broken)[wanted]
    return {**page(listed, total=total, offset=offset), "mended": mended, "broken": broken}
