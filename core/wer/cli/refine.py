"""``wer refine``: rounds of revision on the training split, by any writer, without training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import folders, jobs, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import perform
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.records import Skill
from wer.reports.lineage import diff
from wer.reports.reporting import print_choices
from wer.skills import load_skill
from wer.store import Store


def refine(
    skill: Path | None = None,
    *,
    settings: Settings = Settings(),  # noqa: B008
    rounds: Annotated[
        int | None, Parameter(help="The most revisions of each training task's skill. Default: 2.")
    ] = None,
    resume: Annotated[
        str | None,
        Parameter(help="Go on with this refinement (id or folder): no finished rollout is paid twice."),
    ] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Revise a skill from what happens when it is used on the training tasks, then merge a domain's revisions.

    How many rounds are kept is measured on training tasks that nothing is learnt from (refinement.holdout), and the
    curve is printed. The test split is not touched: measure the result with `wer eval`. A writer that `wer run`
    trained is used with `--backend grpo --writer runs/ID/checkpoints/final/merged`.

    Args:
        skill: A SKILL.md or its folder.
    """
    found, job = plugins.load(), jobs.refinement()
    going_on = None if resume is None else folders.find(runs, resume)
    config = _resolved(skill, settings, rounds, going_on)
    foresee(config, found, job.plan)
    if dry_run:
        return
    before = load_skill(Path(config.seed_skill))
    folder = going_on or folders.create(runs, config, command=job.command, now=datetime.now(UTC))
    refined = perform(config, folder, found, job.work, again=f"wer refine --resume {folder}")
    _print(folder, before, refined)


def _resolved(skill: Path | None, settings: Settings, rounds: int | None, going_on: Path | None) -> RunConfig:
    """The configuration of a refinement that begins, or of one that goes on."""
    if going_on is None and skill is not None:
        load_skill(skill)  # one that can't be read is refused before anything is planned
        return settings.resolve(seed_skill=str(skill.absolute()), refinement__rounds=rounds)
    if going_on is None or skill is not None or rounds is not None:
        raise ConfigError(
            "give a SKILL.md to refine, or --resume RUN without it and without --rounds to go on"
        )
    folders.demand_command(going_on, "refine")
    folders.demand_store(going_on)
    return settings.resume(going_on / "run.toml")


def _print(folder: Path, before: Skill, refined: Mapping[str, Skill]) -> None:
    """Print where each skill is, what changed in it, and by what its depth was chosen."""
    out = Console(highlight=False, soft_wrap=True)
    for domain, after in refined.items():
        out.print(f"{domain}: {folder / 'skills' / 'refined' / after.name}", markup=False)
        out.print(diff(before, after), markup=False)
    store = Store(folder / "wer.sqlite")
    try:
        print_choices(out, store)
    finally:
        store.close()
