"""What a page can ask of a run, by name: one table for the server and for the report in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wer import folders
from wer.errors import WerError
from wer.records import JsonObject
from wer.viewing.overview import curve, overview
from wer.viewing.pairs import pair, pair_list
from wer.viewing.reading import NotThere, Query, Reading, number, page, reading
from wer.viewing.rollouts import event, rollout, rollout_list
from wer.viewing.skills import skill, skill_list
from wer.viewing.tree import candidate, task_list, task_tree

ANSWERS: Mapping[str, Callable[[Reading, Query], JsonObject]] = {
    "overview": overview,
    "curve": curve,
    "tasks": task_list,
    "tree": task_tree,
    "candidate": candidate,
    "pairs": pair_list,
    "pair": pair,
    "skills": skill_list,
    "skill": skill,
    "rollouts": rollout_list,
    "rollout": rollout,
    "event": event,
}


def answer(folder: Path, name: str, query: Query) -> JsonObject:
    """What a page asks of one run.

    Raises:
        WerError: There is no such thing, or the run can't be read.
    """
    if name not in ANSWERS:
        raise NotThere(f"a run is never asked for {name[:40]!r}. It is asked for {', '.join(ANSWERS)}.")
    with reading(folder) as run:
        return ANSWERS[name](run, query)


def run_list(found: Sequence[Path], query: Query) -> JsonObject:
    """Runs, the newest first, each with where it stands."""
    offset = number(query, "offset")
    rows = [_run(folder) for folder in found[offset : offset + 20]]
    return {**page(rows, total=len(found), offset=offset), "limit": 20}


def _run(folder: Path) -> JsonObject:
    told: dict[str, object] = {"name": folder.name, "at_work": folders.holder(folder) is not None}
    try:
        with reading(folder) as run:
            about = run.about()
            told |= {
                "command": str(about.get("command", "")),
                "begun": str(about.get("created", "")),
                "environment": ", ".join(run.config.env),
                "backend": run.config.backend,
                "rollouts": run.store.count_rollouts(),
            }
    except WerError as error:
        told["problem"] = str(error)
    return told
