"""BFCL's references, played and judged: lease, reset, some ten calls, evidence, verdict, and the child's end."""

from __future__ import annotations

import asyncio
import os

import family
from attrs import evolve
from child import answer, asked, cpu_s, wall_s

from wer import plugins
from wer.contracts import Sandbox
from wer.loop.following import Following
from wer.loop.local import LocalRunner, World
from wer.records import NO_SKILL, Task, Unit


async def main() -> None:
    """Replay all of them, so many at a time, several times over."""
    found = plugins.load()
    env = found.environments.make("bfcl", {})
    verifier = env.verifier()
    tasks = [
        task for domain in env.domains() for split in ("train", "test") for task in env.tasks(domain, split)
    ][: asked("episodes")]
    sandbox: Sandbox = found.sandboxes.make(asked("sandbox"))
    why = sandbox.unavailable()
    if why is not None:
        answer(unavailable=why)
        return
    spec = env.sandbox(tasks[0].domain)
    workers = os.cpu_count() or 1
    pool = await sandbox.start(spec, workers)
    try:
        world = World(
            environments={"bfcl": env},
            verifiers={"bfcl": (verifier, found.verifiers.make(verifier))},
            pools={spec.id: pool},
            executor=Following(calls=()),
        )
        agents = {task.key: Following(calls=env.reference(task)) for task in tasks}
        expected = {task.key: await LocalRunner(world=world).expect(task) for task in tasks}
        gate = asyncio.Semaphore(asked("concurrency"))

        async def replay(task: Task) -> bool:
            async with gate:
                here = LocalRunner(world=evolve(world, executor=agents[task.key]))
                trajectory, evidence = await here.execute(Unit(task=task, skill=NO_SKILL, seed=0))
            return world.judge(task, trajectory, evidence, expected[task.key]).passed

        rates, cpus = [], []
        for _ in range(asked("repeats")):
            cpu, began = (cpu_s() + family.cpu_s()), wall_s()
            passed = sum(await asyncio.gather(*map(replay, tasks)))
            rates.append(len(tasks) / (wall_s() - began))
            cpus.append(1000 * ((cpu_s() + family.cpu_s()) - cpu) / len(tasks))
            assert passed == len(tasks), f"{len(tasks) - passed} references did not pass"
        calls = sum(len(turn) for agent in agents.values() for turn in agent.calls)
        answer(rates=rates, cpu_ms=cpus, calls=calls / len(tasks), tier=pool.tier)
    finally:
        await pool.close()


if __name__ == "__main__":
    asyncio.run(main())
