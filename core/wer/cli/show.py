"""``wer show``: a run's refined skills, their diff to the seed, the table, and where each line came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax

from wer import folders
from wer.cli.options import Runs, run_folder
from wer.records import Rollout, Skill
from wer.reports.lineage import ChangedLine, changed_lines, diff, revisions, root
from wer.reports.reporting import print_report
from wer.skills import render_document
from wer.skills.cleaning import plain
from wer.store import Store
from wer.writing import render_trajectory

_SHOWN = {
    "refined": "the refined skill",
    "untrained": "the untrained optimizer's skill (this run has no refined one)",
    "seed": "the seed skill (this run has no revision of it)",
    "skill": "the skill that was measured",
}
"""What is shown of a domain, the first that the run has."""


def show(
    run: str | None = None,
    *,
    trajectories: bool = False,
    runs: Runs = Path("runs"),
) -> None:
    """Show a run's refined skills, what changed in them, and the matched pair behind each changed line.

    Args:
        run: Run id or folder. Default: the newest.
        trajectories: Print the pairs' call sequences in full.
    """
    folder = run_folder(runs, run)
    config = folders.configuration(folder)
    store = Store(folder / "wer.sqlite")
    console = Console(highlight=False)
    try:
        published = _published(store)
        if not published:
            console.print("this run has no skills yet", markup=False)
        for domain, skills in published.items():
            _show_domain(console, store, domain, skills, trajectories)
        print_report(console, store, folder, config)
    finally:
        store.close()


def _published(store: Store) -> Mapping[str, Mapping[str, Skill]]:
    """Skills by domain and condition."""
    found: dict[str, dict[str, Skill]] = {}
    for key, skill_id in store.documents("published").items():
        condition, _, domain = key.partition(" ")
        found.setdefault(domain, {})[condition] = store.skill(skill_id)
    return found


def _show_domain(
    console: Console, store: Store, domain: str, skills: Mapping[str, Skill], trajectories: bool
) -> None:
    condition = next(name for name in _SHOWN if name in skills)
    final = skills[condition]
    console.rule(f"{domain}: {_SHOWN[condition]}", align="left")
    console.print(render_document(final), markup=False)
    if condition not in ("refined", "untrained"):
        return
    history = revisions(store, domain, condition)
    seed = skills.get("seed") or root(history)
    console.rule("changes to the seed skill" if not seed.empty else "all of it is new", align="left")
    console.print(Syntax(diff(seed, final) or "(none)", "diff", background_color="default"))
    for changed in changed_lines(seed, final, history):
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
