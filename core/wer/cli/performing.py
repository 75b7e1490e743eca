"""Opens a run folder for a command, does its work, and says how to go on when it ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from wer import folders
from wer.configuration import RunConfig
from wer.display import Display
from wer.errors import WerError
from wer.loop.auditing import audit
from wer.loop.checking import check_names
from wer.loop.opening import Run, opened
from wer.loop.recording import EVALUATION
from wer.loop.roles import fetch_models
from wer.plugins import Plugins
from wer.reports.reporting import print_report, write_report
from wer.reports.results import results
from wer.store import Store

Work = Callable[[Run], Awaitable[None]]


def create_and_perform(command: str, config: RunConfig, runs: Path, plugins: Plugins, work: Work) -> Path:
    """Do a command's work in a new run folder."""
    check_names(config, plugins)
    folder = folders.create(runs, config, command=command, now=datetime.now(UTC))
    perform(config, folder, plugins, work, again="")
    return folder


def perform(config: RunConfig, folder: Path, plugins: Plugins, work: Work, *, again: str) -> None:
    """Do the work in a run folder that this process alone holds.

    Args:
        again: The command that goes on after an early end; empty when there is none.
    """
    console = Console(stderr=True, highlight=False)
    console.print(f"run folder: {folder}", markup=False, soft_wrap=True)
    with folders.locked(folder):
        try:
            folders.rewrite(folder, config)
            with Display() as display:
                fetch_models(config, display)
            asyncio.run(_perform(config, folder, plugins, work))
        except (WerError, KeyboardInterrupt):
            if again:
                console.print(
                    f"what is finished is stored; go on with: {again}", markup=False, soft_wrap=True
                )
            raise


def conclude(run: Run) -> None:
    """Tell the trackers what was measured, and write and print the report."""
    run.display.end_stage()
    run.recorder.log(EVALUATION, 0, results(run.store).figures())
    write_report(run.folder, run.store, run.config)
    print_report(Console(), run.store, run.folder, run.config)


async def _perform(config: RunConfig, folder: Path, plugins: Plugins, work: Work) -> None:
    store = Store(folder / "wer.sqlite", create=True)
    try:
        with Display() as display:
            async with opened(config, folder=folder, store=store, plugins=plugins, display=display) as run:
                store.put_document("about", "tier", run.tier)
                await audit(run)
                await work(run)
    finally:
        store.close()
