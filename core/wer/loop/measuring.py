"""The only place that runs the test split: Pass@1 of every condition, on shared seeds."""

from __future__ import annotations

from collections.abc import Mapping

from wer.loop.noop import NoOp
from wer.loop.opening import Run
from wer.loop.rollouts import Scheduler, seeds_of
from wer.records import NO_SKILL, Skill, Split, Task, Unit

NOOP = "no-op"
AGAIN = "again"
"""The A/A control: one condition measured once more, with other seeds. What differs from it is noise."""


async def measure(
    run: Run,
    skills: Mapping[str, Mapping[str, Skill]],
    *,
    split: Split = "test",
    purpose: str = "",
    look: str = "",
) -> None:
    """Run every task of a split under every condition, and once with the agent that does nothing.

    Trial j of a task has the same seed under every condition, so that differences are
    paired; equal skills share their rollouts.

    Args:
        skills: The skill of a condition by domain name: ``skills[condition][domain]``.
        purpose: Names other seeds than the split's own.
        look: Shown with the progress, such as ``, look 1 of 3``.
    """
    trials = run.config.evaluation.trials
    tasks = [(domain, task) for domain in run.domains for task in domain.tasks(split)]
    keys, units = [], []
    for condition, by_domain in skills.items():
        for domain, task in tasks:
            seeds = seeds_of(task, trials, run_seed=run.config.seed, purpose=purpose or split)
            # Seed by seed, so that a trial keeps its number when more of them are measured later.
            each = [
                unit for seed in seeds for unit in run.scheduler.units(task, by_domain[domain.name], [seed])
            ]
            keys += [(condition, task, trial) for trial in range(len(each))]
            units += each
    run.display.stage(f"{split} split: {len(skills)} conditions{look}", len(units))
    await _record(run, run.scheduler, keys, units)
    idle = [(NOOP, task, 0) for _, task in tasks]
    run.display.stage(f"{split} split: the agent that does nothing", len(idle))
    nothing = [Unit(task=task, skill=NO_SKILL, seed=0) for _, task in tasks]
    await _record(run, run.scheduler.around(NoOp()), idle, nothing)


async def _record(
    run: Run, scheduler: Scheduler, keys: list[tuple[str, Task, int]], units: list[Unit]
) -> None:
    rollouts = await scheduler.run(units)
    run.store.put_results([(*key, rollout) for key, rollout in zip(keys, rollouts, strict=True)])
