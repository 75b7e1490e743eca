"""``wer run``: the whole protocol, from seed skills to a table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wer import folders, jobs, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import perform, report
from wer.configuration import RunConfig


def run(
    *,
    settings: Settings = Settings(),  # noqa: B008
    resume: Annotated[
        str | None,
        Parameter(
            help="Go on with this run (id or folder): no finished rollout is paid twice. Takes new caps, prices, "
            "--track, --runner, --ray-address, and --set of limits, tracking, concurrency or workers."
        ),
    ] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Make better skills, and measure them: seed skills, training, refinement, merge, test split.

    The whole loop on this machine, without a key: `wer run --env bfcl --backend grpo --preset cpu`.
    With an API model: `wer run --env bfcl --domains file_system --executor openai/gpt-4o-mini
    --max-tokens 20000000`.
    """
    found = plugins.load()
    if resume is not None:
        folder = folders.find(runs, resume)
        folders.demand_command(folder, "run")
        folders.demand_store(folder)
        config = settings.resume(folder / "run.toml")
        if dry_run:
            foresee(config, found)
        else:
            _perform(config, folder, found)
        return
    config = settings.resolve()
    foresee(config, found)
    if not dry_run:
        _perform(config, folders.create(runs, config, command="run", now=datetime.now(UTC)), found)


def _perform(config: RunConfig, folder: Path, found: plugins.Plugins) -> None:
    perform(config, folder, found, jobs.protocol().work, again=f"wer run --resume {folder}")
    report(folder, config)
