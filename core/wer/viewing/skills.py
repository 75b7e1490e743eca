"""Published skills: their text, what changed in them, and the evidence that each new line was written from."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from wer.codec import from_json
from wer.records import NO_SKILL, JsonObject, Skill
from wer.reports.lineage import ChangedLine, changed_lines
from wer.reports.results import title_of
from wer.skills import render_document
from wer.viewing.reading import NotThere, Query, Reading, clip, finite, line
from wer.viewing.rollouts import verdicts

_LINES = 300
_LINE = 600
_ORIGINS = 120
_TEXT = 40_000
_PUBLISHED = 200


@frozen(kw_only=True)
class Written:
    """A revision in the words of the store: what `wer.reports.lineage` traces lines to, without its rollouts.

    Attributes:
        pair: Keys of the rollouts that it was written on seeing.
        rollouts: Keys of those that followed.
    """

    stage: str
    state: str
    index: int
    task: str
    task_key: str
    before: Skill
    after: Skill
    pair: tuple[str, ...]
    rollouts: tuple[str, ...]


def published(run: Reading) -> Sequence[JsonObject]:
    """The skills that the run gives out, by condition and domain."""
    return [
        {"condition": condition, "title": title_of(condition), "domain": domain, "skill_id": skill_id}
        for (condition, domain), skill_id in list(_published(run).items())[:_PUBLISHED]
    ]


def _published(run: Reading) -> Mapping[tuple[str, str], str]:
    """Skill ids by condition and domain, in the order of their making."""
    rows = run.ask("select key, text from documents where purpose = 'published' order by rowid")
    parted = ((row.key.partition(" "), row.text) for row in rows)
    return {(condition, domain): skill_id for (condition, _, domain), skill_id in parted}


def skill_list(run: Reading, _: Query) -> JsonObject:
    """The published skills."""
    return {"rows": published(run)}


def skill(run: Reading, query: Query) -> JsonObject:
    """One published skill and its diff to another of its domain, or to none; each new line with its origin.

    Raises:
        NotThere: Nothing of that condition and domain was published.
    """
    condition, domain = query.get("condition", ""), query.get("domain", "")
    there = _published(run)
    if (condition, domain) not in there:
        raise NotThere(f"this run has published no skill {line(condition, 40)!r} of {line(domain, 40)!r}")
    found = run.skill(there[condition, domain])
    bases = [name for name, of in there if of == domain]
    first = (
        "seed" if "seed" in bases else bases[0]
    )  # of a comparison and of a gate the first is what others are held to
    base = query.get("base") or (first if condition != first else "none")
    before = run.skill(there[base, domain]) if base in bases else NO_SKILL
    history = _history(run, condition, domain)
    changed = changed_lines(before, found, history)
    return {
        "condition": condition,
        "title": title_of(condition),
        "domain": domain,
        "skill_id": found.id,
        "name": line(found.name, 64),
        "words": len(found.body.split()),
        "base": {"condition": base, "title": title_of(base)},
        "bases": [{"condition": each, "title": title_of(each)} for each in bases if each != condition],
        "text": clip(render_document(found), _TEXT),
        "scripts": [line(path, 120) for path in list(found.scripts)[:20]],
        "revised": bool(history),
        "diff": _with_origins(run, diff_rows(before, found), changed),
    }


def diff_rows(before: Skill, after: Skill) -> list[JsonObject]:
    """The lines of two skills' bodies: ``=`` in both, ``-`` gone, ``+`` new."""
    old, new = before.body.splitlines(), after.body.splitlines()
    rows: list[JsonObject] = []
    for tag, a, a_end, b, b_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [{"sign": "=", **clip(text, _LINE)} for text in new[b:b_end]]
        else:
            rows += [{"sign": "-", **clip(text, _LINE)} for text in old[a:a_end]]
            rows += [{"sign": "+", **clip(text, _LINE)} for text in new[b:b_end]]
    if len(rows) > _LINES:
        rows[_LINES:] = [{"sign": "…", "text": f"{len(rows) - _LINES} more lines", "more": 0}]
    return rows


def _with_origins(
    run: Reading, rows: Sequence[JsonObject], changed: Sequence[ChangedLine[Written]]
) -> Sequence[JsonObject]:
    origins = {each.line[:_LINE]: each for each in changed[:_ORIGINS]}
    keys = [
        key for each in origins.values() if each.origin for key in (*each.origin.pair, *each.origin.rollouts)
    ]
    known = verdicts(run, keys[:2_000])
    return [
        {**row, "origin": _origin(origins[row["text"].strip()], known)}
        if row["sign"] == "+" and row["text"].strip() in origins
        else row
        for row in rows
    ]


def _origin(changed: ChangedLine[Written], known: Mapping[str, JsonObject]) -> JsonObject | None:
    origin = changed.origin
    if origin is None:
        return None
    pair = sorted((known[key] for key in origin.pair if key in known), key=lambda each: not each["passed"])
    return {
        "stage": origin.stage,
        "state": origin.state,
        "index": origin.index,
        "task": line(origin.task),
        "task_key": origin.task_key,
        "likeness": finite(changed.likeness),
        "pair": [{"key": each["key"], "passed": each["passed"]} for each in pair[:4]],
        "passed": sum(known[key]["passed"] for key in origin.rollouts if key in known),
        "rollouts": len(origin.rollouts),
    }


def _history(run: Reading, condition: str, domain: str) -> Sequence[Written]:
    """What a condition's skill can stem from, oldest first: its own stages, and the training of the refined one."""
    prefixes = (
        f"refine/{condition}/",
        f"{condition}/",
        *(("train/", "search/") if condition == "refined" else ()),
    )
    return [found for found in _written(run, domain) if found.stage.startswith(prefixes)]


def _written(run: Reading, domain: str) -> Iterator[Written]:
    rows = run.ask(
        "select c.stage, c.state_id, c.\"index\" as place, c.rollouts, json_extract(c.json, '$.skill') as after, "
        "s.skill_id, s.evidence, s.task_key, t.id as task from candidates c join states s on s.id = c.state_id "
        "join tasks t on t.key = s.task_key where c.reward is not null and after is not null "
        "and json_extract(t.json, '$.env') || '/' || t.domain = :domain order by c.rowid",
        domain=domain,
    )
    skills: dict[str, Skill] = {}
    for row in rows:
        if row.skill_id not in skills:
            skills[row.skill_id] = run.skill(row.skill_id)
        yield Written(
            stage=row.stage,
            state=row.state_id,
            index=row.place,
            task=row.task,
            task_key=row.task_key,
            before=skills[row.skill_id],
            after=from_json(row.after, Skill),
            pair=tuple(json.loads(row.evidence)),
            rollouts=tuple(json.loads(row.rollouts or "[]")),
        )
