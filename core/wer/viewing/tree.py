"""The revision tree: from seed skills by way of candidates to what was retained, refined and published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wer.codec import from_json
from wer.records import Candidate, JsonObject, Skill
from wer.viewing.reading import PAGE, Query, Reading, clip, finite, line, number, page
from wer.viewing.rollouts import task_head, verdicts
from wer.viewing.skills import diff_rows, published

_STATES = 120
_CANDIDATES = 500


def task_list(run: Reading, query: Query) -> JsonObject:
    """Tasks that were learnt from, each with the best that every stage wrote for it."""
    offset = number(query, "offset")
    tasks = run.ask(
        "select s.task_key, t.id, json_extract(t.json, '$.env') || '/' || t.domain as domain, count(*) as states "
        "from states s join tasks t on t.key = s.task_key group by s.task_key order by min(s.rowid) "
        "limit :page offset :offset",
        page=PAGE,
        offset=offset,
    )
    stages = _best(run, [task.task_key for task in tasks])
    rows = [
        {
            "task_key": task.task_key,
            "task": line(task.id),
            "domain": line(task.domain),
            "states": task.states,
            "stages": stages.get(task.task_key, [])[:24],
        }
        for task in tasks
    ]
    total = run.one("select count(distinct task_key) from states")[0]
    return page(rows, total=total, offset=offset)


def _best(run: Reading, tasks: Sequence[str]) -> Mapping[str, list[JsonObject]]:
    rows = run.ask(
        "select s.task_key, c.stage, count(*) as written, max(json_extract(c.reward, '$.total')) as best, "
        "max(json_extract(c.reward, '$.task')) as task, min(c.rowid) as began "
        "from candidates c join states s on s.id = c.state_id where s.task_key in :tasks "
        "group by 1, 2 order by began",
        tasks=list(tasks),
    )
    found: dict[str, list[JsonObject]] = {}
    for row in rows:
        found.setdefault(row.task_key, []).append(
            {
                "stage": row.stage,
                "written": row.written,
                "best": finite(row.best),
                "task": finite(row.task),
            }
        )
    return found


def task_tree(run: Reading, query: Query) -> JsonObject:
    """The states of one task and the candidates that were written for them.

    A state names the candidate that it came from; a state without one began from the seed.
    """
    key = str(run.one("select key from tasks where key = :key", key=query.get("task", "")).key)
    task = run.store.task(key)
    states = run.ask(
        "select s.id, s.parent, s.round, s.phase, s.evidence, s.skill_id, json_extract(k.json, '$.name') as skill, "
        "json_extract(k.json, '$.body') is null as empty from states s left join skills k on k.id = s.skill_id "
        "where s.task_key = :task order by s.rowid limit :states",
        task=key,
        states=_STATES,
    )
    candidates = _candidates(run, [state.id for state in states])
    known = verdicts(run, [key for state in states for key in json.loads(state.evidence)[:4]])
    there = run.one(
        "select count(distinct s.id) as states, count(c.state_id) as candidates from states s "
        "left join candidates c on c.state_id = s.id where s.task_key = :task",
        task=key,
    )
    return {
        "task": task_head(task),
        "states": [_state(state, known) for state in states],
        "candidates": candidates,
        "published": [each for each in published(run) if each["domain"] == f"{task.env}/{task.domain}"],
        "left_out": {
            "states": there.states - len(states),
            "candidates": there.candidates - len(candidates),
        },
    }


def _state(row: Any, known: Mapping[str, JsonObject]) -> JsonObject:
    pair = [known[key] for key in json.loads(row.evidence)[:4] if key in known]
    return {
        "id": row.id,
        "parent": row.parent,
        "round": row.round,
        "phase": row.phase,
        "skill_id": row.skill_id,
        "skill": "no skill" if row.empty else line(row.skill or "unnamed", 64),
        "evidence": [{"key": each["key"], "passed": each["passed"]} for each in pair],
    }


def _candidates(run: Reading, states: Sequence[str]) -> list[JsonObject]:
    rows = run.ask(
        'select c.stage, c.state_id, c."index" as place, c.id, c.reward, '
        "json_extract(c.json, '$.skill') is null as unreadable, json_array_length(c.rollouts) as n, "
        "(select count(*) from json_each(c.rollouts) e join rollouts r on r.key = e.value "
        "where json_extract(r.json, '$.verdict.passed')) as passed "
        "from candidates c where c.state_id in :states order by c.rowid limit :candidates",
        states=list(states),
        candidates=_CANDIDATES,
    )
    return [
        {
            "stage": row.stage,
            "state": row.state_id,
            "index": row.place,
            "id": row.id,
            "reward": _reward(row.reward),
            "readable": not row.unreadable,
            "rollouts": row.n or 0,
            "passed": row.passed,
        }
        for row in rows
    ]


def _reward(text: str | None) -> JsonObject | None:
    if text is None:
        return None
    reward = json.loads(text)
    return {name: finite(reward.get(name)) for name in ("total", "task", "fmt", "len")}


def candidate(run: Reading, query: Query) -> JsonObject:
    """One candidate: its reward, what it changed in the skill, on seeing what, and what came of it."""
    row = run.one(
        "select c.*, s.task_key, s.skill_id, s.evidence, s.round, s.phase from candidates c "
        'join states s on s.id = c.state_id where c.stage = :stage and c.state_id = :state and c."index" = :place',
        stage=query.get("stage", ""),
        state=query.get("state", ""),
        place=number(query, "index"),
    )
    written = from_json(row.json, Candidate)
    before = run.skill(row.skill_id)
    after = written.skill or Skill()
    keys = json.loads(row.evidence)[:4], (json.loads(row.rollouts) if row.rollouts else [])[:24]
    known = verdicts(run, [key for part in keys for key in part])
    evidence, rollouts = ([known[key] for key in part if key in known] for part in keys)
    children = run.ask("select id, phase, round from states where parent = :id limit 8", id=row.id)
    return {
        "stage": row.stage,
        "state": row.state_id,
        "index": written.index,
        "id": row.id,
        "task": task_head(run.store.task(row.task_key)),
        "reward": _reward(row.reward),
        "problem": line(written.problem, 500),
        "readable": written.skill is not None,
        "reasoning": clip(written.reasoning, 6_000),
        "text": clip("" if written.skill else written.text, 12_000),
        "before": line(before.name or "no skill", 64),
        "after": line(after.name, 64),
        "description": line(after.description, 1_000),
        "scripts": [line(path, 120) for path in list(after.scripts)[:20]],
        "diff": diff_rows(before, after) if written.skill else [],
        "evidence": sorted(evidence, key=lambda each: not each["passed"]),
        "rollouts": rollouts,
        "retained": [{"phase": child.phase, "round": child.round} for child in children],
        "usage": {"prompt": written.usage.prompt_tokens, "completion": written.usage.completion_tokens},
    }
