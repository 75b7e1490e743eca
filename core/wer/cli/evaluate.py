"""``wer eval``: Pass@1 of a skill beside no skill and the agent that does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli.options import Runs, Settings
from wer.cli.performing import create_and_perform
from wer.loop.measuring import measure
from wer.loop.opening import Run
from wer.loop.running import publish
from wer.records import NO_SKILL
from wer.reports.reporting import print_report, write_report
from wer.skills import load_skill


def evaluate(
    skill: Path,
    *,
    settings: Settings = Settings(),  # noqa: B008
    split: Literal["train", "test"] = "test",
    trials: Annotated[int | None, Parameter(help="Rollouts a task under each condition. Default: 3.")] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Measure Pass@1 of a skill, paired by task and seed with no skill, with intervals.

    Args:
        skill: A SKILL.md or its folder.
        split: Tasks to run. Look at the test split once, when you are done choosing.
    """
    measured = load_skill(skill)
    config = settings.resolve(evaluation__trials=trials)

    async def work(run: Run) -> None:
        conditions = {
            "none": {domain.name: NO_SKILL for domain in run.domains},
            "skill": {domain.name: measured for domain in run.domains},
        }
        publish(run, {"skill": conditions["skill"]})
        run.store.put_document("about", "split", split)
        await measure(run, conditions, split=split)
        run.display.end_stage()
        write_report(run.folder, run.store, config)
        print_report(Console(), run.store, run.folder, config)

    create_and_perform("eval", config, runs, plugins.load(), work)
