"""``wer refine``: rounds of revision on the training split, by any writer, without training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import join
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import jobs, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, Whole
from wer.cli.performing import going_on, new_folder, perform
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
        Whole | None, Parameter(help="The most revisions of each training task's skill. Default: 2.")
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
    curve is printed. The test split is not touched; the command that measures the result there is printed. A writer
    that `wer run` trained is used with `--backend grpo --writer runs/ID/checkpoints/final/merged`.

    Args:
        skill: A SKILL.md or its folder.
    """
    found, job = plugins.load(), jobs.refinement()
    folder, config = _chosen(skill, settings, rounds, resume, runs)
    foresee(config, found, job.plan)
    if dry_run:
        return
    before = load_skill(Path(config.seed_skill))
    folder = folder or new_folder(config, runs, found, command=job.command, plan=job.plan)
    refined = perform(config, folder, found, job.work, again="refine")
    _print(folder, before, refined)
    _print_next(folder, config, before, refined)


def _chosen(
    skill: Path | None, settings: Settings, rounds: int | None, resume: str | None, runs: Path
) -> tuple[Path | None, RunConfig]:
    """The configuration of a refinement that begins; or of one that goes on, and its folder."""
    if resume is None and skill is not None:
        load_skill(skill)  # one that can't be read is refused before anything is planned
        return None, settings.resolve(seed_skill=str(skill.absolute()), refinement__rounds=rounds)
    if resume is None or skill is not None or rounds is not None:
        raise ConfigError(
            "give a SKILL.md to refine, or --resume RUN without it and without --rounds to go on"
        )
    return going_on("refine", settings, runs, resume)


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


def _print_next(folder: Path, config: RunConfig, before: Skill, refined: Mapping[str, Skill]) -> None:
    """Print the command that tells whether each skill is better than the one that it came from."""
    out = Console(highlight=False, soft_wrap=True)
    changed = {name: after for name, after in refined.items() if after.body != before.body}
    if changed:
        out.print("Better than before? The test split says, once you are done choosing:")
    for name, after in changed.items():
        words = [
            "wer",
            "eval",
            str(folder / "skills" / "refined" / after.name),
            "--against",
            config.seed_skill,
        ]
        if len(refined) > 1:
            words += ["--domains", name.partition("/")[2]]
        out.print("  " + join([*words, "--config", str(folder / "run.toml")]), markup=False)
