"""``wer compare``: skills side by side, paired by task and seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from wer import plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, Whole
from wer.cli.performing import perform_job, report
from wer.jobs import comparison, named_skills


def compare(
    first: Path,
    second: Path,
    *more: Path,
    settings: Settings = Settings(),  # noqa: B008
    split: Literal["train", "test"] = "test",
    trials: Annotated[Whole | None, Parameter(help="Rollouts a task of each skill. Default: 3.")] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Compare skills on the same tasks and seeds, with intervals, and p corrected where they are several.

    The first is the one that the others are compared with, beside no skill. It is measured twice, with other seeds
    the second time: an A/A control that shows how much is noise. `wer compare old/SKILL.md new/SKILL.md --env bfcl`.

    Args:
        first: A SKILL.md, its folder, or a run, whose refined skills are taken.
        second: Likewise.
        more: Likewise.
        split: Tasks to run. Look at the test split once, when you are done choosing.
    """
    skills = named_skills([first, second, *more])
    config = settings.resolve(evaluation__trials=trials)
    found = plugins.load()
    job = comparison(skills, split=split)
    foresee(config, found, job.plan)
    if dry_run:
        return
    folder, _ = perform_job(job, config, runs, found)
    report(folder, config)
