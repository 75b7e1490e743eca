"""What an episode of tau2 costs on this machine: ``python benchmarks/tau2_costs.py``.

Prints, for each domain, the start of an episode (lease to first user message), the memory that
a concurrent episode adds, and replays of references a second. Wall time depends on what else
the machine does, so CPU time of the sandbox is printed beside it. Linux only.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "work"), str(HERE.parent / "tests")]

import family  # noqa: E402
from support.scripted_user import ScriptedUser  # noqa: E402
from support.tau2_scripts import play, reference  # noqa: E402

import wer_process  # noqa: E402
import wer_tau2  # noqa: E402

STARTS = 20
EPISODES = 8
REPLAYS = 60


async def main() -> None:
    """Measure and print."""
    env = wer_tau2.wer_environments()["tau2"]({})
    workers = os.cpu_count() or 1
    pool = await wer_process.wer_sandboxes()["process"]().start(env.sandbox("airline"), workers=workers)
    print(
        f"{workers} workers of {family.private_mb(family.descendants()) / workers:.0f} MB, isolation: {pool.tier}"
    )
    try:
        for domain in env.domains():
            await measure(env, domain, pool, at_once=2 * workers)
    finally:
        await pool.close()


async def measure(env, domain, pool, *, at_once: int) -> None:
    """Print a domain's three figures."""
    tasks = env.tasks(domain, "test")
    walls, cpu = [], family.cpu_s()
    for i in range(STARTS):
        began = time.perf_counter()
        session = await begun(env, tasks[i], pool)
        walls.append(1000 * (time.perf_counter() - began))
        await session.close()
    start_cpu = 1000 * (family.cpu_s() - cpu) / STARTS

    idle = set(family.descendants())
    sessions = [await begun(env, tasks[i], pool) for i in range(EPISODES)]
    fresh = family.private_mb(episodes(idle)) / EPISODES
    for session in sessions:
        await session.evidence()
    hashed = family.private_mb(episodes(idle)) / EPISODES
    for session in sessions:
        await session.close()

    gate = asyncio.Semaphore(at_once)

    async def replay(task) -> None:
        async with gate:
            await play(env, task, reference(task), await pool.lease())

    cpu, began = family.cpu_s(), time.perf_counter()
    await asyncio.gather(*(replay(tasks[i % len(tasks)]) for i in range(REPLAYS)))
    wall = time.perf_counter() - began
    replay_cpu = (family.cpu_s() - cpu) / REPLAYS
    print(
        f"{domain:8} start {min(walls):.1f} ms at best, {statistics.median(walls):.1f} median, {start_cpu:.1f} CPU | "
        f"episode {fresh:.1f} MB, {hashed:.1f} once hashed | "
        f"{REPLAYS / wall:.1f} replays/s, {1000 * replay_cpu:.0f} ms CPU each"
    )


async def begun(env, task, pool):
    """An episode whose user has said its first words."""
    session = await env.open(task, await pool.lease(), {"user": ScriptedUser("Hello.")}, 0)
    await session.begin()
    return session


def episodes(idle: set[int]) -> list[int]:
    """The children that were forked since."""
    return [pid for pid in family.descendants() if pid not in idle]


if __name__ == "__main__":
    asyncio.run(main())
