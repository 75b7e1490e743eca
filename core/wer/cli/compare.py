"""``wer compare``: skills side by side, paired by task and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import folders, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import conclude, create_and_perform
from wer.errors import ConfigError
from wer.loop.measuring import AGAIN, measure
from wer.loop.opening import Run
from wer.loop.running import publish
from wer.records import NO_SKILL, Skill
from wer.reports.benching import bench_lines
from wer.reports.forecast import Plan
from wer.skills import load_skill
from wer.store import Store


def compare(
    first: Path,
    second: Path,
    *more: Path,
    settings: Settings = Settings(),  # noqa: B008
    split: Literal["train", "test"] = "test",
    trials: Annotated[int | None, Parameter(help="Rollouts a task of each skill. Default: 3.")] = None,
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
    skills = _named([first, second, *more])
    config = settings.resolve(evaluation__trials=trials)
    found = plugins.load()
    foresee(config, found, Plan(conditions=len(skills) + 2, split=split))
    if dry_run:
        return

    async def work(run: Run) -> None:
        names = [domain.name for domain in run.domains]
        conditions = {
            name: {each: _of(by_domain, each, name) for each in names} for name, by_domain in skills.items()
        }
        base = next(iter(conditions))
        run.store.put_document("about", "split", split)
        run.store.put_document("about", "bases", f"{base} none")
        publish(run, conditions)
        await measure(run, {"none": dict.fromkeys(names, NO_SKILL), **conditions}, split=split)
        await measure(run, {AGAIN: conditions[base]}, split=split, purpose="again")
        conclude(run)
        for line in bench_lines(run.store, base=base):
            Console(highlight=False, soft_wrap=True).print(line, markup=False)

    create_and_perform("compare", config, runs, found, work)


def _named(paths: Sequence[Path]) -> Mapping[str, Mapping[str, Skill]]:
    """The skills by condition and domain; a file's skill, under ``*``, is for every domain."""
    named: dict[str, Mapping[str, Skill]] = {}
    for path in paths:
        skills = _refined(path) if (path / "run.toml").is_file() else {"*": load_skill(path)}
        name = "-".join((path.parent if path.name == "SKILL.md" else path).resolve().name.split())
        named[name if name not in named else f"{name}-{len(named) + 1}"] = skills
    return named


def _refined(folder: Path) -> Mapping[str, Skill]:
    folders.demand_store(folder)
    store = Store(folder / "wer.sqlite")
    try:
        published = [(*key.split(" ", 1), skill) for key, skill in store.documents("published").items()]
        refined = {
            domain: store.skill(skill) for condition, domain, skill in published if condition == "refined"
        }
        if not refined:
            raise ConfigError(
                f"{str(folder)!r} has no refined skills: give a SKILL.md, or a run that has finished."
            )
        return refined
    finally:
        store.close()


def _of(by_domain: Mapping[str, Skill], domain: str, name: str) -> Skill:
    skill = by_domain.get(domain, by_domain.get("*"))
    if skill is None:
        raise ConfigError(
            f"{name!r} has no skill for {domain} (it has {', '.join(by_domain)}). Choose domains that all have with "
            "--domains."
        )
    return skill
