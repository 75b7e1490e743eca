"""What each command does once its run is open: the same for the command line and for Python."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Generic, TypeVar

from attrs import frozen

from wer import folders
from wer.configuration import RunConfig
from wer.display import Display
from wer.errors import BudgetExhausted, ConfigError
from wer.gate import NEW, OLD, gate
from wer.loop.auditing import audit
from wer.loop.depths import best_of, curve, shipped
from wer.loop.measuring import AGAIN, measure
from wer.loop.opening import Run, opened
from wer.loop.recording import EVALUATION
from wer.loop.running import begin, publish, refine_all, run_protocol
from wer.loop.sources import check_merges
from wer.methods import TAKEN
from wer.plugins import Plugins
from wer.records import NO_SKILL, Skill, Split
from wer.reports import learning
from wer.reports.forecast import Plan
from wer.reports.gating import Gate, Rule
from wer.reports.reporting import write_report
from wer.reports.results import results
from wer.reports.showing import published
from wer.skills import load_skill
from wer.store import Store

T = TypeVar("T")

ALL = "*"
"""Stands for every domain in the skills of a comparison."""


@frozen(kw_only=True)
class Job(Generic[T]):
    """The work of one command. It prints nothing but progress.

    Attributes:
        command: Kept in the run folder, because only the same command can go on in it.
        plan: What it performs, for the forecast; None is the whole protocol.
    """

    command: str
    plan: Plan | None
    work: Callable[[Run], Awaitable[T]]


async def carry_out(
    work: Callable[[Run], Awaitable[T]], config: RunConfig, folder: Path, plugins: Plugins, display: Display
) -> T:
    """Open the run of a folder that this process holds, audit it, and do the work."""
    store = Store(folder / "wer.sqlite", create=True)
    try:
        with display:
            async with opened(config, folder=folder, store=store, plugins=plugins, display=display) as run:
                store.put_document("about", "tier", run.tier)
                await audit(run)
                return await work(run)
    finally:
        store.close()


def protocol(command: str = "run") -> Job[None]:
    """Everything that the configuration asks for: training, refinement, merge, and the measurement.

    Args:
        command: `Job.command`.
    """

    async def work(run: Run) -> None:
        await run_protocol(run)
        conclude(run)

    return Job(command=command, plan=None, work=work)


def refinement() -> Job[Mapping[str, Skill]]:
    """Rounds of revision on the training tasks from the configuration's seed skill; nothing is measured."""

    async def work(run: Run) -> Mapping[str, Skill]:
        optimizer = run.optimizer()  # made first, so that wrong settings are found before anything is paid
        try:
            start = await begin(run, optimizer)
            refined = await refine_all(run, optimizer, start, "refined")
        except BudgetExhausted:
            _publish_so_far(run)
            raise
        finally:
            await optimizer.close()
        publish(run, {"refined": refined})
        await check_merges(run, "refined", refined)
        for line in learning.sentences(run.store, run.config):
            run.display.say(line)
        return refined

    return Job(command="refine", plan=Plan(scans=2, revised=1, merged=1), work=work)


def _publish_so_far(run: Run) -> None:
    """Where a cap ends refinement early: the best of the depths that were measured until then, if any."""
    measured = curve(run.store, "refined")
    if measured:
        publish(run, {"so-far": shipped(run.store, best_of(measured))})
        run.display.say(f"the best skills so far are in {run.folder / 'skills' / 'so-far'}")


def measurement(skill: Skill, *, split: Split, again: bool) -> Job[None]:
    """Pass@1 of a skill beside no skill.

    Args:
        again: Measure the skill once more, with other seeds.
    """

    async def work(run: Run) -> None:
        names = [domain.name for domain in run.domains]
        skills = dict.fromkeys(names, skill)
        publish(run, {"skill": skills})
        run.store.put_document("about", "split", split)
        await measure(run, {"none": dict.fromkeys(names, NO_SKILL), "skill": skills}, split=split)
        if again:
            run.store.put_document("about", "bases", "skill")
            await measure(run, {AGAIN: skills}, split=split, purpose="again")
        conclude(run)

    return Job(command="eval", plan=Plan(conditions=3 if again else 2, split=split), work=work)


def comparison(skills: Mapping[str, Mapping[str, Skill]], *, split: Split) -> Job[None]:
    """Skills on the same tasks and seeds, the first twice as an A/A control.

    Args:
        skills: By condition, then by domain; `ALL` stands for every domain.
    """

    async def work(run: Run) -> None:
        names = [domain.name for domain in run.domains]
        conditions = {
            name: {each: _skill_for(each, by_domain, name) for each in names}
            for name, by_domain in skills.items()
        }
        base = next(iter(conditions))
        run.store.put_document("about", "split", split)
        run.store.put_document("about", "bases", f"{base} none")
        publish(run, conditions)
        await measure(run, {"none": dict.fromkeys(names, NO_SKILL), **conditions}, split=split)
        await measure(run, {AGAIN: conditions[base]}, split=split, purpose="again")
        conclude(run)

    return Job(command="compare", plan=Plan(conditions=len(skills) + 2, split=split), work=work)


def gating(new: Skill, old: Skill, rule: Rule, *, split: Split) -> Job[Gate]:
    """Whether a skill is better than an older one; stops as soon as that is clear."""

    async def work(run: Run) -> Gate:
        names = [domain.name for domain in run.domains]
        run.store.put_document("about", "split", split)
        run.store.put_document("about", "bases", OLD)
        olds, news = dict.fromkeys(names, old), dict.fromkeys(names, new)
        publish(run, {OLD: olds, NEW: news})
        answer = await gate(run, news, olds, rule, split=split)
        conclude(run)
        answer.write(run.folder)
        return answer

    return Job(command="eval", plan=Plan(conditions=2, split=split), work=work)


def conclude(run: Run) -> None:
    """Tell the trackers what was measured, and write the report."""
    run.display.end_stage()
    run.recorder.log(EVALUATION, 0, results(run.store).figures())
    write_report(run.folder, run.store, run.config)


def named_skills(paths: Sequence[Path]) -> Mapping[str, Mapping[str, Skill]]:
    """Skills to compare, by condition and domain.

    Args:
        paths: A SKILL.md or its folder each, which is for every domain, or a run, whose refined skills are taken.
    """
    named: dict[str, Mapping[str, Skill]] = {}
    for path in paths:
        skills = skills_of(path) if (path / "run.toml").is_file() else {ALL: load_skill(path)}
        name = "-".join((path.parent if path.name == "SKILL.md" else path).resolve().name.split())
        named[name if name not in (*named, *TAKEN) else f"{name}-{len(named) + 1}"] = skills
    return named


def skills_of(folder: Path) -> Mapping[str, Skill]:
    """The refined skills of a run, by domain.

    Raises:
        ConfigError: It has none.
    """
    folders.demand_store(folder)
    with closing(Store(folder / "wer.sqlite", read_only=True)) as store:
        found = published(store)
    refined = {domain: skills["refined"] for domain, skills in found.items() if "refined" in skills}
    if not refined:
        raise ConfigError(
            f"{str(folder)!r} has no refined skills: give a SKILL.md, or a run that has finished."
        )
    return refined


def _skill_for(domain: str, by_domain: Mapping[str, Skill], name: str) -> Skill:
    """The skill of a condition for one domain.

    Args:
        name: Of the condition.

    Raises:
        ConfigError: It has none.
    """
    skill = by_domain.get(domain, by_domain.get(ALL))
    if skill is None:
        raise ConfigError(
            f"{name!r} has no skill for {domain} (it has {', '.join(by_domain)}). Choose domains that all have with "
            "--domains."
        )
    return skill
