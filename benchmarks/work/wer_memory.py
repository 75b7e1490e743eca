"""Many rollouts in one process, a thousand at a time as phases ask for them: what memory stays."""

from __future__ import annotations

import asyncio
import gc

import bench_world
from child import answer, asked, cpu_s, resident_mb
from wer_calls import a_run

from wer.records import Unit


async def main() -> None:
    """Run without a model, and look at memory after a tenth and at the end."""
    rollouts, batch = asked("rollouts"), asked("batch")
    async with a_run(url="http://127.0.0.1:9/v1", calls=0, concurrency=64) as run:
        tasks = [task for domain in run.domains for task in domain.train]
        tenth = after = 0.0
        cpu = cpu_s()
        for first in range(0, rollouts, batch):
            await run.scheduler.run(
                [
                    Unit(task=tasks[number % len(tasks)], skill=bench_world.SKILL, seed=number)
                    for number in range(first, min(first + batch, rollouts))
                ]
            )
            if not tenth and first + batch >= rollouts / 10:
                tenth = _resident_mb()
        after = _resident_mb()
        answer(tenth_mb=tenth, after_mb=after, cpu_s=cpu_s() - cpu)


def _resident_mb() -> float:
    gc.collect()
    return resident_mb()


if __name__ == "__main__":
    asyncio.run(main())
