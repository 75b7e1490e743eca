"""Several methods from one start, in one run: the same tasks, seeds, executor and budget, one table."""

from __future__ import annotations

from collections.abc import Mapping

from wer.loop.measuring import AGAIN, measure
from wer.loop.merging import merge_all
from wer.loop.opening import Run
from wer.loop.running import Start, begin, publish, search, seeded
from wer.loop.sources import check_merges
from wer.methods import configurations
from wer.records import NO_SKILL, Skill


async def bench(run: Run) -> None:
    """Improve the same seed skills by every method of the configuration, and measure them all together.

    A method that names other seed skills, or who drafts them, starts from those; the baselines are
    the same for all. Each method has the run's share (``budget.search_*``) for itself. What two
    methods both run, such as the same skill on the same seed, is paid for by the first of them.
    """
    methods = {name: run.scoped(name, config) for name, config in configurations(run.config).items()}
    # Made once in vain, so that wrong settings of the last one are found before the first is paid.
    trials = [scoped.optimizer() for scoped in methods.values()]
    for trial in trials:
        await trial.close()
    start = await begin(run, *trials)
    skills: dict[str, Mapping[str, Skill]] = {
        "none": {domain.name: NO_SKILL for domain in run.domains},
        "seed": await merge_all(run, start.scanned, "seed"),
    }
    for name, scoped in methods.items():
        run.display.say(f"method {name}")
        optimizer = scoped.optimizer()
        try:
            skills[name] = await search(scoped, optimizer, await _start_of(scoped, run, start))
        finally:
            await optimizer.close()
    publish(run, skills)
    for name, scoped in methods.items():
        await check_merges(scoped, "refined", skills[name])
    await measure(run, skills)
    await measure(run, {AGAIN: skills["seed"]}, purpose="again")


async def _start_of(scoped: Run, run: Run, shared: Start) -> Start:
    """Where a method starts: where all do, or from the seed skills that it has for itself."""
    own, common = ((each.config.seed_skill, each.config.seed_writer) for each in (scoped, run))
    return shared if own == common else await seeded(scoped)
