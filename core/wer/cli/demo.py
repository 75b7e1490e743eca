"""``wer demo``: a recorded run in ten seconds, every verdict judged anew."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from wer import demo as recording
from wer import folders, plugins
from wer.configuration import RunConfig
from wer.errors import ConfigError, StoreError
from wer.records import Rollout, Skill
from wer.reports.lineage import Revision, diff
from wer.reports.replay import rejudge
from wer.reports.reporting import findings, split_title, table
from wer.reports.results import results
from wer.reports.showing import final, matched_pair, published
from wer.skills.cleaning import plain
from wer.store import Store
from wer.viewing.aligning import aligned, divergence
from wer.viewing.rollouts import events_of

_BEFORE, _AFTER = 3, 6
"""Events shown before two rollouts part, and after."""


def demo(
    *,
    keep: Annotated[
        Path | None,
        Parameter(help="Leave the run's folder below this one, for wer view, wer show and wer verify."),
    ] = None,
) -> None:
    """Show a recorded run: what changed in a skill, the pair of rollouts behind it, and what that was worth.

    Nothing is downloaded, and no model is asked. The run was a real one, and its verdicts are judged anew as you
    watch.
    """
    out = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="wer-demo-") as scratch:
        folder = recording.unpack(Path(scratch) if keep is None else _fresh(keep))
        store = Store(folder / "wer.sqlite")
        try:
            for piece in _told(store, folders.configuration(folder), folder.name):
                out.print(piece)
        finally:
            store.close()
    if keep is not None:
        out.print(f"the run is in {folder}: look around with wer view {folder}", markup=False, soft_wrap=True)


def _fresh(keep: Path) -> Path:
    if keep.exists() and any(keep.iterdir()):
        raise ConfigError(f"{str(keep)!r} is not empty. Name another folder with --keep.")
    keep.mkdir(parents=True, exist_ok=True)
    return keep


def _told(store: Store, config: RunConfig, name: str) -> Iterator[RenderableType]:
    yield Text(
        f"A recorded run: {config.executor} as the frozen agent, and as the writer of its skills, on real tasks of "
        f"{', '.join(config.env)}. How it was recorded, and whose the tasks are: wer/demo/README.md.\n"
    )
    yield Rule("1. every verdict again, by the verifier that judged then", align="left")
    yield _judged(store)
    for domain, skills in published(store).items():
        pair = matched_pair(store, domain, skills)
        if pair is not None:
            yield from _revision(pair[0], skills)
            yield Rule(
                "3. written on seeing a matched pair: one task and skill, two seeds",
                align="left",
            )
            yield from _pair(*pair)
    found = results(store)
    yield Rule("4. what it was worth on tasks that nobody learnt from", align="left")
    yield table(found, title=f"{split_title(store)} ({name})")
    yield from map(Text, findings(found, store, config))
    yield Text(
        "\nYour turn: wer init writes three tasks and a check to begin from, and wer run --env bfcl --backend grpo "
        "--preset cpu performs the whole loop on this machine."
    )


def _judged(store: Store) -> Text:
    began = time.monotonic()
    again = list(rejudge(store, plugins.load()))
    differing = [each for each in again if not each.agrees]
    if differing:
        raise StoreError(
            f"{len(differing)} of {len(again)} verdicts differ from those recorded, such as that of "
            f"{differing[0].rollout.task_id}. The verifier was changed since, or the recording: wer verify says more."
        )
    passed = sum(each.now.passed for each in again)
    return Text(
        f"{len(again)} rollouts judged again by {', '.join(sorted({each.verifier for each in again}))} in "
        f"{time.monotonic() - began:.1f} s: {passed} passed, and every verdict is the one recorded.\n",
        style="green",
    )


def _revision(written: Revision, skills: Mapping[str, Skill]) -> Iterator[RenderableType]:
    """What a writer changed, how far that went, and what the run ended with."""
    yield Rule("2. one revision: what the writer changed in the skill in force", align="left")
    yield Syntax(plain(diff(written.before, written.after)), "diff", background_color="default")
    ended = skills[final(skills) or ""]
    last = "its seed skill: no revision took its place" if ended == skills.get("seed") else ended.name
    yield Text(
        f"{written.passed} of {written.rollouts} rollouts passed with it on {written.task_id}. The run ended with "
        f"{last}.\n"
    )


def _pair(revision: Revision, success: Rollout, failure: Rollout) -> Iterator[RenderableType]:
    """Two rollouts from shortly before they part."""
    sides = list(events_of(success)), list(events_of(failure))
    first = divergence(*sides)
    drawn = Table(show_lines=True, expand=True)
    drawn.add_column(f"passed (seed {success.seed})", header_style="green", overflow="fold", ratio=1)
    drawn.add_column(f"failed (seed {failure.seed})", header_style="red", overflow="fold", ratio=1)
    for row in aligned(*sides)[max(0, first - _BEFORE) : first + _AFTER]:
        cells = [
            "" if at is None else plain(f"{side[at][0]}: {side[at][1]}")
            for side, at in zip(sides, row, strict=True)
        ]
        alike = cells[0] == cells[1]
        drawn.add_row(*(Text(_shortened(cell), style="dim" if alike else "") for cell in cells))
    yield Text(f"{revision.task_id}, in {revision.stage}; the first {first} events are the same")
    yield drawn
    for line in failure.verdict.diagnostics[:3]:
        yield Text(plain(f"the verifier on the failure: {line}"), style="red")
    yield Text("")


def _shortened(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
