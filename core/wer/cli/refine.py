"""``wer refine``: rounds of revision on the training split, by any writer, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import create_and_perform
from wer.loop.opening import Run
from wer.loop.running import begin, publish, refine_all
from wer.reports.forecast import Plan
from wer.reports.lineage import diff
from wer.skills import load_skill


def refine(
    skill: Path,
    *,
    settings: Settings = Settings(),  # noqa: B008
    rounds: Annotated[
        int | None, Parameter(help="Revisions of each training task's skill. Default: 2.")
    ] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Revise a skill from what happens when it is used on the training tasks, then merge a domain's revisions.

    The test split is not touched: measure the result with `wer eval`. A writer that `wer run` trained is used
    with `--backend grpo --writer runs/ID/checkpoints/final/merged`.

    Args:
        skill: A SKILL.md or its folder.
    """
    before = load_skill(skill)
    config = settings.resolve(seed_skill=str(skill), refinement__rounds=rounds)
    found = plugins.load()
    foresee(config, found, Plan(scans=2, revised=1, merged=1))
    if dry_run:
        return

    async def work(run: Run) -> None:
        optimizer = run.optimizer()  # made first, so that wrong settings are found before anything is paid
        try:
            start = await begin(run, optimizer)
            refined = await refine_all(run, optimizer, start, "refined")
        finally:
            await optimizer.close()
        publish(run, {"refined": refined})
        out = Console(highlight=False, soft_wrap=True)
        for domain, after in refined.items():
            out.print(f"{domain}: {run.folder / 'skills' / 'refined' / after.name}", markup=False)
            out.print(diff(before, after), markup=False)

    create_and_perform("refine", config, runs, found, work)
