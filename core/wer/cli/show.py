"""``wer show``: a run's best skill, its diff to the seed, the table, and where each line came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax

from wer import folders
from wer.cli.options import Runs
from wer.records import NO_SKILL, Rollout, Skill
from wer.reports.lineage import ChangedLine, changed_lines, diff, revisions
from wer.reports.reporting import print_report
from wer.skills import render_document
from wer.skills.cleaning import plain
from wer.store import Store
from wer.writing import render_trajectory


def show(
    run: str | None = None,
    *,
    trajectories: bool = False,
    runs: Runs = Path("runs"),
) -> None:
    """Show the best skill of a run, what changed in it, and the matched pair behind each changed line.

    Args:
        run: Run id or folder. Default: the newest.
        trajectories: Print the pairs' call sequences in full.
    """
    folder = folders.find(runs, run)
    config = folders.configuration(folder)
    store = Store(folder / "wer.sqlite")
    console = Console(highlight=False)
    try:
        published = store.documents("published")
        for domain in dict.fromkeys(key.partition(" ")[2] for key in published):
            _show_domain(console, store, domain, published, trajectories)
        print_report(console, store, folder, config)
    finally:
        store.close()


def _show_domain(
    console: Console, store: Store, domain: str, published: Mapping[str, str], trajectories: bool
) -> None:
    final = next(
        (
            store.skill(published[f"{name} {domain}"])
            for name in ("refined", "untrained", "seed")
            if f"{name} {domain}" in published
        ),
        NO_SKILL,
    )
    seed_id = published.get(f"seed {domain}")
    seed: Skill = store.skill(seed_id) if seed_id else NO_SKILL
    console.rule(f"{domain}: the refined skill", align="left")
    console.print(render_document(final), markup=False)
    console.rule("changes to the seed skill", align="left")
    console.print(Syntax(diff(seed, final) or "(none)", "diff", background_color="default"))
    for changed in changed_lines(seed, final, revisions(store, domain)):
        _show_origin(console, changed, trajectories)


def _show_origin(console: Console, changed: ChangedLine, trajectories: bool) -> None:
    console.print(f"+ {changed.line}", markup=False, style="green", soft_wrap=True)
    origin = changed.origin
    if origin is None:
        console.print("    written by the merger; no revision has a line like it", markup=False)
        return
    how = "from" if changed.likeness == 1.0 else f"reworded ({changed.likeness:.0%} alike) from"
    pair = ", ".join(_named(rollout) for rollout in origin.pair)
    console.print(
        f"    {how} {origin.stage}, {origin.task_id}: {origin.passed}/{origin.rollouts} passed after it; "
        f"written on seeing {pair}",
        markup=False,
        soft_wrap=True,
    )
    if trajectories:
        for rollout in origin.pair:
            console.print(plain(render_trajectory(rollout.trajectory)), markup=False)


def _named(rollout: Rollout) -> str:
    return f"{'success' if rollout.verdict.passed else 'failure'} {rollout.key}"
