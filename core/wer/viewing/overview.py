"""The first page of a run: where it is, what it measured, what the rewards did, what it cost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wer import folders
from wer.agents import called
from wer.records import Json, JsonObject, Usage
from wer.redaction import redacted
from wer.reports import costs
from wer.reports.depths import depth_lines
from wer.reports.reporting import findings, split_title
from wer.reports.results import AVERAGE, Contrast, Results, results, title_of
from wer.reports.sources import source_lines
from wer.reports.statistics import Estimate, mean_of_runs
from wer.viewing.reading import NotThere, Query, Reading, finite, line
from wer.viewing.rollouts import newest

_POINTS = 300
"""Update steps of a curve; more than that are drawn as means of neighbours."""
_STAGES = 200
_TERMS = ("total", "task", "fmt", "len")


def overview(run: Reading, _: Query) -> JsonObject:
    """Everything that the first page shows."""
    found = results(run.store)
    return {
        **_head(run, measured=bool(found.cells)),
        "title": split_title(run.store),
        "table": _table(found),
        "contrasts": [_contrast(each) for each in found.contrasts],
        "findings": [line(each, 500) for each in _findings(run, found)],
        "choices": [each for each in (*depth_lines(run.store), *source_lines(run.store)) if each],
        "rewards": _rewards(run),
        "metrics": _names(run),
        "spend": _spend(run.store.spend()),
        "times": [{"stage": stage, "s": finite(s)} for stage, s in list(run.store.times().items())[:_STAGES]],
        "newest": newest(run),
    }


def pulse(folder: Path) -> JsonObject:
    """Whether there is anything new, for a page that waits: changes with every finished thing."""
    stats = [stat for name in ("wer.sqlite", "wer.sqlite-wal", "run.toml") if (stat := _stat(folder / name))]
    return {
        "version": "-".join(f"{stat.st_mtime_ns:x}.{stat.st_size:x}" for stat in stats),
        "at_work": folders.holder(folder) is not None,
    }


def _stat(file: Path) -> os.stat_result | None:
    """When a file was last written; None when there is nothing in it, as in the log of those who only look on."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found if found.st_size else None


def curve(run: Reading, query: Query) -> JsonObject:
    """The figures of one measure over the update steps, oldest first.

    Raises:
        NotThere: The newest step has no such measure.
    """
    name = query.get("name", "")
    if name not in _names(run):
        raise NotThere(
            f"this run's update steps have no measure {line(name, 40)!r}. Go back to its overview."
        )
    steps = run.store.metrics()
    began = list(dict.fromkeys(stage for stage, _, _ in steps))
    points = [(began.index(stage), step, stage, finite(figures.get(name))) for stage, step, figures in steps]
    size = max(1, -(-len(points) // _POINTS))
    return {
        "name": name,
        "steps": len(points),
        "together": size,
        "points": [_together(points[start : start + size]) for start in range(0, len(points), size)],
    }


def _together(points: Sequence[tuple[int, int, str, float | None]]) -> JsonObject:
    known = [value for *_, value in points if value is not None]
    mean = finite(sum(known) / len(known)) if known else None
    return {"stage": points[0][2], "step": points[0][1], "value": mean}


def _head(run: Reading, *, measured: bool) -> JsonObject:
    """What the run is and where it stands, in the words of ``wer status``."""
    about, config = run.about(), run.config
    at_work = folders.holder(run.folder)
    ended = measured or _made_what_it_should(run, about.get("command"))
    state = "at work" if at_work is not None else "ended" if ended else "ended early"
    settings: Mapping[str, Json] = {
        "command": about.get("command"),
        "environment": ", ".join(config.env),
        "domains": ", ".join(config.domains) or "all",
        "method": config.method,
        "backend": config.backend,
        "executor": ", ".join(map(called, config.executors)),
        "writer": config.writer or "the executor's model",
        "seed": str(config.seed),
        "begun": about.get("created"),
        "wer": about.get("wer"),
    }
    written, scored = run.one("select count(*), count(reward) from candidates")
    caps = config.budget
    return {
        "name": run.folder.name,
        "state": state,
        "at_work": at_work is not None,
        "process": at_work,
        "stage": next(reversed(list(run.store.times())), None),
        "settings": {name: str(value) for name, value in redacted(settings).items() if value},
        "rollouts": run.store.count_rollouts(),
        "written": written,
        "scored": scored,
        "caps": {"rollouts": caps.max_rollouts, "tokens": caps.max_tokens, "usd": caps.max_cost},
    }


def _made_what_it_should(run: Reading, command: object) -> bool:
    """Whether there is what a command ends with that measures nothing; a merge lies outside its run."""
    if command == "refine":
        return any(key.startswith("refined ") for key in run.store.documents("published"))
    return command == "merge"


def _table(found: Results) -> JsonObject:
    """The table of reports, with the average where it is seen first."""
    domains = [AVERAGE, *found.domains] if len(found.domains) > 1 else found.domains
    return {
        "columns": [found.heading(domain) for domain in domains],
        "rows": [
            {
                "condition": condition,
                "title": title_of(condition),
                "cells": [_estimate(found.cell(condition, domain)) for domain in domains],
            }
            for condition in found.conditions
        ],
    }


def _estimate(estimate: Estimate | None) -> JsonObject | None:
    if estimate is None:
        return None
    figures = {name: finite(getattr(estimate, name)) for name in ("mean", "low", "high")}
    return {**figures, "tasks": estimate.tasks, "trials": estimate.trials}


def _findings(run: Reading, found: Results) -> Sequence[str]:
    """What is said beside the contrasts, which have their own table."""
    return list(findings(found, run.store, run.config))[len(found.contrasts) :] if found.cells else []


def _contrast(contrast: Contrast) -> JsonObject:
    figures = {name: finite(getattr(contrast.difference, name)) for name in ("mean", "low", "high", "p")}
    return {
        "better": contrast.better,
        "base": contrast.base,
        "titles": [title_of(contrast.better), title_of(contrast.base)],
        "finding": contrast.finding,
        "family": contrast.family,
        "tasks": contrast.difference.tasks,
        **figures,
    }


def _rewards(run: Reading) -> Sequence[JsonObject]:
    """The mean reward of each stage's candidates, in the order of their beginning.

    The interval is Student's over the states' means: candidates of one state resemble each other.
    """
    columns = ", ".join(f"avg(json_extract(reward, '$.{term}')) as {term}" for term in _TERMS)
    groups = run.ask(
        f"select stage, state_id, min(rowid) as began, count(*) as written, {columns} "  # noqa: S608
        "from candidates where reward is not null group by stage, state_id order by began"
    )
    stages: dict[str, list[Any]] = {}
    for group in groups:
        stages.setdefault(group.stage, []).append(group)
    return [_stage(stage, rows) for stage, rows in list(stages.items())[-_STAGES:]]


def _stage(stage: str, groups: Sequence[Any]) -> JsonObject:
    weights = [group.written for group in groups]
    means = {
        term: sum(getattr(group, term) * group.written for group in groups) / sum(weights) for term in _TERMS
    }
    interval = mean_of_runs([group.total for group in groups]) if len(groups) > 1 else None
    return {
        "stage": stage,
        "candidates": sum(weights),
        "states": len(groups),
        "low": finite(interval.low) if interval else None,
        "high": finite(interval.high) if interval else None,
        **{term: finite(value) for term, value in means.items()},
    }


def _names(run: Reading) -> Sequence[str]:
    """The measures of the update steps, in the order of the newest row."""
    rows = run.ask("select json from metrics order by rowid desc limit 1")
    return list(json.loads(rows[0].json))[:80] if rows else []


def _spend(spent: Mapping[str, Usage]) -> Sequence[JsonObject]:
    return [
        {
            "role": role,
            "tokens": usage.prompt_tokens + usage.completion_tokens,
            "calls": costs.count(usage.calls, usage),
            "prompt": costs.count(usage.prompt_tokens, usage),
            "cached": costs.count(usage.cached_tokens, usage),
            "completion": costs.count(usage.completion_tokens, usage),
            "usd": costs.usd(usage, 2),
        }
        for role, usage in sorted(spent.items(), key=lambda item: -item[1].prompt_tokens)
    ]
