"""What an episode of tau2 costs on this machine: ``python tests/benchmarks/tau2_costs.py``.

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
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.scripted_user import ScriptedUser
from support.tau2_scripts import play, reference

import wer_process
import wer_tau2

STARTS = 20
EPISODES = 8
REPLAYS = 60
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


async def main() -> None:
    """Measure and print."""
    env = wer_tau2.wer_environments()["tau2"]({})
    workers = os.cpu_count() or 1
    pool = await wer_process.wer_sandboxes()["process"]().start(env.sandbox("airline"), workers=workers)
    print(f"{workers} workers of {memory_mb(list(family())) / workers:.0f} MB, isolation: {pool.tier}")
    try:
        for domain in env.domains():
            await measure(env, domain, pool, at_once=2 * workers)
    finally:
        await pool.close()


async def measure(env, domain, pool, *, at_once: int) -> None:
    """Print a domain's three figures."""
    tasks = env.tasks(domain, "test")
    walls, cpu = [], cpu_s()
    for i in range(STARTS):
        began = time.perf_counter()
        session = await begun(env, tasks[i], pool)
        walls.append(1000 * (time.perf_counter() - began))
        await session.close()
    start_cpu = 1000 * (cpu_s() - cpu) / STARTS

    idle = set(family())
    sessions = [await begun(env, tasks[i], pool) for i in range(EPISODES)]
    fresh = memory_mb(episodes(idle)) / EPISODES
    for session in sessions:
        await session.evidence()
    hashed = memory_mb(episodes(idle)) / EPISODES
    for session in sessions:
        await session.close()

    gate = asyncio.Semaphore(at_once)

    async def replay(task) -> None:
        async with gate:
            await play(env, task, reference(task), await pool.lease())

    cpu, began = cpu_s(), time.perf_counter()
    await asyncio.gather(*(replay(tasks[i % len(tasks)]) for i in range(REPLAYS)))
    wall = time.perf_counter() - began
    replay_cpu = (cpu_s() - cpu) / REPLAYS
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
    return [pid for pid in family() if pid not in idle]


def family() -> Iterator[int]:
    """This process's descendants."""
    parents = {int(entry.name): parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            yield pid


def parent(entry: Path) -> int:
    """A process's parent; 0 when it is gone."""
    try:
        return int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def memory_mb(pids: list[int]) -> float:
    """Memory that is these processes' alone."""
    private = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        private += sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return private / 1024


def cpu_s() -> float:
    """CPU seconds of the sandbox so far, ended episodes included."""
    total = 0
    for pid in family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total * _TICK_S


if __name__ == "__main__":
    asyncio.run(main())
