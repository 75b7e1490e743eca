"""``wer merge``: several skills into one, by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from attrs import asdict, evolve
from cyclopts import Parameter, validators
from rich.console import Console

from wer import plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, Whole
from wer.cli.performing import perform_job
from wer.configuration import LimitsConfig, MergeConfig
from wer.errors import ConfigError, SkillError
from wer.jobs import Job
from wer.leaks import sentence
from wer.loop.ledger import Budget, Ledger, RoleModel
from wer.loop.merging import Merger, merger
from wer.loop.opening import Run
from wer.loop.sources import Source, check
from wer.records import Sampling, Skill, derive_seed
from wer.reports.forecast import Plan
from wer.reports.reporting import print_choices
from wer.skills import load_skill, save_skill, slug
from wer.skills.cleaning import plain
from wer.store import Store

_TEMPERATURE = Sampling().temperature
_ENOUGH = 6
"""Rollouts: of two skills, a fall from 6/6 to 1/6 is then told from noise at 5 %."""


def merge(
    *skills: Path,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Folder of the merged skill; its name is the skill's.")
    ],
    max_words: Annotated[Whole, Parameter(validator=validators.Number(gte=20))] = 400,
    check_rollouts: Annotated[
        Whole | None,
        Parameter(
            validator=validators.Number(gte=1),
            help="With --env: rollouts of each skill, and of the merged one on the same tasks. Default: 6.",
        ),
    ] = None,
    settings: Settings = Settings(),  # noqa: B008
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Merge skills of one family of tasks into one, which --writer writes.

    With --env and --executor it is then checked, skill by skill, on training tasks: which of them pass as often with
    the merged skill, and which lost something beyond noise. Without, nothing is run: measure the result with
    `wer eval`.

    Args:
        skills: Two or more SKILL.md files or their folders.
        max_words: Length that the merger is asked to keep to.
    """
    if len(skills) < 2:
        raise SkillError(f"{len(skills)} skill given; merging needs at least two")
    if out.exists() or slug(out.name) != out.name:
        raise SkillError(
            f"--out {str(out)!r} must be a new folder whose name can be a skill's: lowercase letters, digits and "
            "single hyphens, such as merged-skill"
        )
    sources = {str(path): load_skill(path) for path in skills}
    if len(sources) < len(skills):
        raise SkillError("a skill is named twice: name each once")
    found = plugins.load()
    if settings.env is not None:
        config = settings.resolve(merge__max_words=max_words, merge__check_rollouts=check_rollouts)
        rollouts = config.merge.check_rollouts or _ENOUGH
        config = evolve(config, merge=evolve(config.merge, check_rollouts=rollouts))
        foresee(config, found, Plan(given=len(sources)))
        if not dry_run:
            folder, _ = perform_job(_checked(sources, out), config, runs, found)
            _print(folder)
        return
    given = [name for name, value in asdict(settings).items() if value is not None]
    if settings.writer is None or not {*given} <= {"writer", "seed"} or check_rollouts is not None or dry_run:
        raise ConfigError(
            "without --env nothing is run: give --writer, and at most --seed and --max-words. The other options belong "
            "to a check on training tasks, with --env and --executor"
        )
    seed = settings.seed or 0
    merged = asyncio.run(
        _merge(found, settings.writer, [*sources.values()], max_words=max_words, seed=seed, name=out.name)
    )
    path = save_skill(merged, out.parent)
    Console(soft_wrap=True).print(str(path), markup=False)


def _checked(skills: Mapping[str, Skill], out: Path) -> Job[None]:
    """Merge in a run of its own, then try each skill and the merged one on the training tasks in turn."""

    async def work(run: Run) -> None:
        seed = run.config.seed
        tasks = [task for domain in run.domains for task in domain.train]
        tasks.sort(key=lambda task: derive_seed(seed, "merge", task.key))
        writer = merger(run, _give_up, lambda skill: run.screen.refusal(skill, tasks))
        merged = await writer.merge([*skills.values()], name=out.name)
        leaks = run.screen.leaks(merged, tasks)
        if leaks:
            run.display.say(f"the merged skill {sentence(leaks)}. See leak in the configuration.")
        run.display.say(f"merged: {save_skill(merged, out.parent)}")
        sources = {name: Source(skill=skill, tasks=tuple(tasks)) for name, skill in skills.items()}
        await check(run, merged, sources, name=out.name)

    return Job(command="merge", plan=None, work=work)


def _print(folder: Path) -> None:
    store = Store(folder / "wer.sqlite")
    try:
        print_choices(Console(), store)
    finally:
        store.close()


def _give_up(problem: str) -> None:
    raise SkillError(f"the merger wrote no readable skill: {problem}. Try another --writer.")


async def _merge(
    found: plugins.Plugins, writer: str, sources: Sequence[Skill], *, max_words: int, seed: int, name: str
) -> Skill:
    """Merge as a run does. Nothing is gone on with, so that the store is a scratch one."""
    said = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(line: str) -> None:
        said.print(plain(line), markup=False)

    settings = MergeConfig(max_words=max_words)
    async with AsyncExitStack() as stack:
        store = Store(Path(stack.enter_context(TemporaryDirectory())) / "wer.sqlite", create=True)
        stack.callback(store.close)
        ledger = Ledger(Budget(), store)
        model = RoleModel(
            found.model(writer), role="merger", ledger=ledger, retries=LimitsConfig().retries, on_retry=say
        )
        stack.push_async_callback(model.close)
        merger = Merger(
            model=model,
            store=store,
            settings=settings,
            seed=seed,
            temperature=_TEMPERATURE,
            unreadable=_give_up,
        )
        merged = await merger.merge(sources, name=name)
        used = ledger.total
        usd = "cost unknown" if used.usd is None else f"{used.usd:.4f} USD"
        say(
            f"{used.calls} calls, {used.prompt_tokens} prompt and {used.completion_tokens} completion tokens, {usd}"
        )
        return merged
