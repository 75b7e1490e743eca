"""``wer run``: the whole protocol, from seed skills to a table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import folders, plugins
from wer.cli.forecast import print_forecast
from wer.cli.options import Runs, Settings
from wer.cli.performing import perform
from wer.configuration import RunConfig
from wer.loop.opening import Run, check_names, domains, environments
from wer.loop.running import run_protocol
from wer.reports.reporting import print_report, write_report


def run(
    *,
    settings: Settings = Settings(),  # noqa: B008
    resume: Annotated[
        str | None,
        Parameter(
            help="Go on with this run (id or folder): no finished rollout is paid twice. Takes new caps, prices, "
            "and --set limits.*, concurrency or workers."
        ),
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Print the forecast and stop.", negative=())] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Make better skills, and measure them: seed skills, training, refinement, merge, test split.

    The whole loop on this machine, without a key: `wer run --env bfcl --backend grpo --preset cpu`.
    With an API model: `wer run --env bfcl --executor openai/gpt-4o-mini --max-tokens 5000000`.
    """
    found = plugins.load()
    if resume is not None:
        folder = folders.find(runs, resume)
        folders.demand_command(folder, "run")
        folders.demand_store(folder)
        config = settings.resume(folder / "run.toml")
        _perform(config, folder, found)
        return
    config = settings.resolve()
    check_names(config, found)
    chosen = domains(config, environments(config, found), test_limit=config.evaluation.test_limit)
    print_forecast(Console(), config, chosen)
    if not dry_run:
        _perform(config, folders.create(runs, config, command="run", now=datetime.now(UTC)), found)


def _perform(config: RunConfig, folder: Path, found: plugins.Plugins) -> None:
    async def work(run: Run) -> None:
        await run_protocol(run)
        run.display.end_stage()
        write_report(folder, run.store, config)
        print_report(Console(), run.store, folder, config)

    perform(config, folder, found, work, again=f"wer run --resume {folder}")
