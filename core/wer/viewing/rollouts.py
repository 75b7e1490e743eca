"""Rollouts as lists and as events: what was said, called and answered, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wer.records import Evidence, JsonObject, Rollout, Task, Trajectory
from wer.viewing.reading import PAGE, NotThere, Query, Reading, clip, finite, line, number, page

_EVENTS = 120
_TEXT = 3_000
_WHOLE = 100_000
_NEWEST = 8

_LISTED = """
    select r.key, t.id as task, r.task_key, r.skill_id, r.seed, r.tries,
        json_extract(s.json, '$.name') as skill, json_extract(s.json, '$.body') is null as empty,
        json_extract(r.json, '$.verdict.passed') as passed, json_extract(r.json, '$.verdict.score') as score,
        json_array_length(r.json, '$.trajectory.steps') as steps,
        json_extract(r.json, '$.trajectory.wall_s') as wall_s,
        json_extract(r.json, '$.evidence.end.why') as why, json_extract(r.json, '$.verdict.diagnostics[0]') as said
    from rollouts r join tasks t on t.key = r.task_key left join skills s on s.id = r.skill_id
"""


def newest(run: Reading) -> Sequence[JsonObject]:
    """The rollouts that finished last."""
    return [_row(row) for row in run.ask(f"{_LISTED} order by r.rowid desc limit {_NEWEST}")]


def rollout_list(run: Reading, query: Query) -> JsonObject:
    """Rollouts, the newest first; of one task or skill, or only those that passed or failed."""
    wanted = {
        "r.task_key = :task": query.get("task"),
        "r.skill_id = :skill": query.get("skill"),
        "json_extract(r.json, '$.verdict.passed') = :passed": {"yes": 1, "no": 0}.get(
            query.get("passed", "")
        ),
    }
    where = " and ".join(["true", *(clause for clause, value in wanted.items() if value is not None)])
    named = zip(("task", "skill", "passed"), wanted.values(), strict=True)
    values = {name: value for name, value in named if value is not None}
    offset = number(query, "offset")
    rows = run.ask(
        f"{_LISTED} where {where} order by r.rowid desc limit {PAGE} offset :offset", offset=offset, **values
    )
    total = run.one(f"select count(*) from rollouts r where {where}", **values)[0]  # noqa: S608
    return page([_row(row) for row in rows], total=total, offset=offset)


def verdicts(run: Reading, keys: Sequence[str]) -> Mapping[str, JsonObject]:
    """Rollouts in a few words, by key; what is not there is left out."""
    rows = run.ask(f"{_LISTED} where r.key in :keys", keys=list(keys)) if keys else []
    return {row.key: _row(row) for row in rows}


def rollout(run: Reading, query: Query) -> JsonObject:
    """One rollout, a page of its events at a time."""
    found, task = read(run, query.get("key", ""))
    events, offset = list(events_of(found)), number(query, "offset")
    shown = events[offset : offset + _EVENTS]
    limit = text_limit(shown)
    return {
        **head(run, found),
        "task": task_head(task),
        "events": [
            {"kind": kind, **clip(text, limit), "at": at} for at, (kind, text) in enumerate(shown, offset)
        ],
        "total": len(events),
        "offset": offset,
        "limit": _EVENTS,
    }


def event(run: Reading, query: Query) -> JsonObject:
    """One event of a rollout as a whole, or its next hundred thousand characters."""
    found, _ = read(run, query.get("key", ""))
    events, at, start = list(events_of(found)), number(query, "at"), number(query, "from")
    if at >= len(events):
        raise NotThere(f"this rollout has {len(events)} events, and none numbered {at}")
    return clip(events[at][1][start:], _WHOLE // 2)


def read(run: Reading, key: str) -> tuple[Rollout, Task]:
    """A rollout and its task.

    Raises:
        NotThere: This run has no such rollout.
    """
    found = run.store.rollout(key)
    if found is None:
        raise NotThere(f"this run has no rollout {line(key, 40)!r}")
    return found, run.store.task(run.one("select task_key from rollouts where key = :key", key=key).task_key)


def head(run: Reading, found: Rollout) -> JsonObject:
    """What a rollout was and what the verifier says of it."""
    usage = found.trajectory.usage
    row = verdicts(run, [found.key])[found.key]
    return {
        **row,
        "diagnostics": [line(text, 500) for text in found.verdict.diagnostics[:12]],
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "executor": found.executor,
    }


def task_head(task: Task) -> JsonObject:
    """A task as a reader meets it."""
    return {
        "key": task.key,
        "id": line(task.id),
        "domain": line(f"{task.env}/{task.domain}"),
        "split": task.split,
        "turns": [clip(turn, 2_000) for turn in task.turns[:12]],
        "marks": [line(mark) for mark in task.marks[:6]],
    }


def events_of(found: Rollout) -> Iterator[tuple[str, str]]:
    """(kind, text) in order: ``user``, ``agent``, ``call``, ``result``, ``refused``, ``end``."""
    yield from _trajectory(found.trajectory)
    yield from _unseen(found.evidence)
    end = found.trajectory.end
    yield "end", f"{end.why}, by the {end.by}"


def text_limit(events: Sequence[object]) -> int:
    """How much of each text is shown, so that a page stays small however long its texts are."""
    return max(200, min(_TEXT, 60_000 // max(1, len(events))))


def _trajectory(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    for index, message in enumerate(trajectory.messages):
        yield "user", message
        for step in (step for step in trajectory.steps if step.turn == index):
            if step.text.strip():
                yield "agent", step.text.strip()
            for place, call in enumerate(step.calls):
                yield "call", f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})"
                if place < len(step.observations):
                    seen = step.observations[place]
                    yield ("result" if seen.ok else "refused"), seen.text


def _unseen(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What a simulated user did that the agent could not see."""
    for step in evidence.user:
        for call in step.calls:
            yield "user's call", f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})"
        if step.text.strip():
            yield "user's end", step.text.strip()


def _row(row: Any) -> JsonObject:
    return {
        "key": row.key,
        "task": line(row.task),
        "task_key": row.task_key,
        "skill_id": row.skill_id,
        "skill": "no skill" if row.empty else line(row.skill or "unnamed", 64),
        "seed": row.seed,
        "tries": row.tries,
        "passed": bool(row.passed),
        "score": finite(row.score),
        "steps": row.steps or 0,
        "wall_s": finite(row.wall_s or 0.0),
        "end": line(row.why or "done", 40),
        "said": line(row.said or ""),
    }
