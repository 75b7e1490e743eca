"""``wer run``: the whole protocol, from seed skills to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wer import jobs, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import going_on, new_folder, perform, report
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
        folder, config = going_on("run", settings, runs, resume)
        if dry_run:
            foresee(config, found)
        else:
            _perform(config, folder, found)
        return
    config = settings.resolve()
    foresee(config, found)
    if not dry_run:
        _perform(config, new_folder(config, runs, found, command="run"), found)


def _perform(config: RunConfig, folder: Path, found: plugins.Plugins) -> None:
    perform(config, folder, found, jobs.protocol().work, again="run")
    report(folder, config)
