"""Opens a run folder for a command, does its work, and says how to go on when it ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TypeVar

from rich.console import Console

from wer import folders, jobs
from wer.cli.options import Settings
from wer.configuration import RunConfig
from wer.display import Display
from wer.errors import WerError
from wer.jobs import Job, carry_out
from wer.loop.checking import check_names, demand_models
from wer.loop.opening import Run
from wer.loop.roles import fetch_models
from wer.plugins import Plugins
from wer.reports.benching import bench_lines
from wer.reports.forecast import Plan
from wer.reports.reporting import print_report
from wer.reports.results import bases
from wer.store import Store

T = TypeVar("T")


def perform_job(job: Job[T], config: RunConfig, runs: Path, plugins: Plugins) -> tuple[Path, T]:
    """Do a command's work in a new run folder, which is given too."""
    check_names(config, plugins)
    folder = new_folder(config, runs, plugins, command=job.command, plan=job.plan)
    return folder, perform(config, folder, plugins, job.work, again="")


def new_folder(
    config: RunConfig, runs: Path, plugins: Plugins, *, command: str, plan: Plan | None = None
) -> Path:
    """Make the folder of a run that can begin.

    Args:
        plan: What the command performs; None is the whole protocol.

    Raises:
        WerError: One of its models can't be opened, for want of a key for example.
    """
    demand_models(config, plugins, writes=plan is None or plan.writes)
    return folders.create(runs, config, command=command, now=datetime.now(UTC))


def going_on(command: str, settings: Settings, runs: Path, run: str) -> tuple[Path, RunConfig]:
    """The folder of a run that goes on, and its configuration with what may change about it.

    Raises:
        ConfigError: There is none, another command made it, or an option would make it another run.
        StoreError: It is damaged.
    """
    folder = folders.find(runs, run)
    folders.demand_command(folder, command)
    folders.demand_store(folder)
    return folder, settings.resume(folder / "run.toml")


def perform(
    config: RunConfig, folder: Path, plugins: Plugins, work: Callable[[Run], Awaitable[T]], *, again: str
) -> T:
    """Do the work in a run folder that this process alone holds.

    Args:
        again: The command whose ``--resume`` goes on after an early end; empty when there is none.
    """
    console = Console(stderr=True, highlight=False)
    console.print(f"run folder: {folder}", markup=False, soft_wrap=True)
    with folders.locked(folder):
        try:
            folders.rewrite(folder, config)
            with Display() as display:
                fetch_models(config, display)
            return asyncio.run(carry_out(work, config, folder, plugins, Display()))
        except (WerError, OSError, KeyboardInterrupt):
            if again:
                console.print(
                    f"what is finished is stored; go on with: wer {again} --resume {quote(str(folder))}",
                    markup=False,
                    soft_wrap=True,
                )
            raise


def report(folder: Path, config: RunConfig) -> None:
    """Print what a run measured, and how much of it is noise where that was measured too."""
    store = Store(folder / "wer.sqlite")
    out = Console(highlight=False, soft_wrap=True)
    try:
        print_report(Console(), store, folder, config)
        for line in bench_lines(store, base=bases(store)[0]):
            out.print(line, markup=False)
    finally:
        store.close()


def conclude(run: Run) -> None:
    """Tell the trackers what was measured, and write and print the report."""
    jobs.conclude(run)
    print_report(Console(), run.store, run.folder, run.config)
