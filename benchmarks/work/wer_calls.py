"""Model calls through everything that a run is: scheduler, budget, retries, client, store, display."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import bench_world
from child import answer, asked, cpu_s, wall_s
from rich.console import Console

from wer import plugins
from wer.configuration import resolve
from wer.display import Display
from wer.loop.opening import Run, opened
from wer.records import Unit
from wer.store import Store


@contextlib.asynccontextmanager
async def a_run(*, url: str, calls: int, concurrency: int) -> AsyncIterator[Run]:
    """Open a run over the world in memory, as ``wer run`` does."""
    config = resolve(
        None,
        None,
        (),
        {
            "env": ["moving"],
            "executor": f"openai/mock@{url}",
            "agent": "asking",
            "sandbox": "bench_memory",
            "concurrency": concurrency,
            "budget.max_tokens": 10**12,
            "budget.max_rollouts": 10**9,
            "executor_options": {"calls": calls},
        },
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder / "wer.sqlite", create=True)
        with Display(Console(quiet=True)) as display:
            async with opened(
                config,
                folder=folder,
                store=store,
                plugins=plugins.load(extra=(bench_world,)),
                display=display,
            ) as run:
                yield run
        store.close()


async def main() -> None:
    """Have the rollouts and say what a model call cost."""
    concurrency, calls, rollouts = asked("concurrency"), asked("calls"), asked("rollouts")
    async with a_run(url=asked("url"), calls=calls, concurrency=concurrency) as run:
        tasks = [task for domain in run.domains for task in domain.train]
        units = [
            Unit(task=tasks[number % len(tasks)], skill=bench_world.SKILL, seed=number)
            for number in range(rollouts)
        ]
        for task in tasks:
            await run.scheduler.expectation(task)
        run.display.stage("rollouts", rollouts)
        cpu, began = cpu_s(), wall_s()
        found = await run.scheduler.run(units)
        wall, cpu = wall_s() - began, cpu_s() - cpu
        made = sum(rollout.trajectory.usage.calls for rollout in found)
    answer(calls=made, wall_s=wall, cpu_s=cpu)


if __name__ == "__main__":
    asyncio.run(main())
