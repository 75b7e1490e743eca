"""The store alone: rollouts written one transaction each, and a large run's file opened again."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import bench_world
from bench_world import CALL, SKILL
from child import answer, asked, cpu_s, wall_s

from wer.loop.ledger import Budget, Ledger
from wer.records import (
    End,
    Evidence,
    Observation,
    Rollout,
    Step,
    Task,
    Trajectory,
    TurnEvidence,
    Usage,
    Verdict,
)
from wer.store import Store

STEPS = 8
SAID = "I list the folder first, then I move the file and say so. " * 3


def rollout(task: Task, number: int) -> Rollout:
    """One of eight steps, some 4 KB of JSON, as multi-turn tasks have them."""
    step = Step(turn=0, text=SAID, calls=(CALL,), observations=(Observation(text="moved " * 20),))
    state = {"root": dict.fromkeys(("report", "notes", "archive", "draft"), "text " * 10)}
    turn = TurnEvidence(state=state, results=("moved " * 20,) * STEPS, calls=STEPS)
    end = End(by="agent")
    usage = Usage(calls=STEPS, prompt_tokens=12_000, completion_tokens=640)
    return Rollout(
        key=f"{number:016x}",
        task_id=task.id,
        skill_id=SKILL.id,
        seed=number,
        trajectory=Trajectory(messages=("Go.",), steps=(step,) * STEPS, end=end, seed=number, usage=usage),
        evidence=Evidence(turns=(turn,), end=end),
        verdict=Verdict(score=1.0, passed=True),
    )


def main() -> None:
    """Write, close, open, look up."""
    count, timed = asked("rollouts"), asked("timed")
    tasks = bench_world.Moving({}).tasks("files", "train")
    with tempfile.TemporaryDirectory(dir=asked("folder")) as name:
        path = Path(name) / "wer.sqlite"
        store = Store(path, create=True)
        made = [rollout(tasks[number % len(tasks)], number) for number in range(timed)]
        cpu, began = cpu_s(), wall_s()
        for number, each in enumerate(made):
            store.put_rollout(each, task=tasks[number % len(tasks)], skill=SKILL, verifier="moved", tries=1)
        written_s, written_cpu_s = wall_s() - began, cpu_s() - cpu
        for number in range(timed, count):
            task = tasks[number % len(tasks)]
            store.put_rollout(rollout(task, number), task=task, skill=SKILL, verifier="moved", tries=1)
        store.add_spend("executor", Usage(calls=count * STEPS))
        store.close()

        began = wall_s()
        store = Store(path)
        ledger = Ledger(Budget(), store)
        opened_s = wall_s() - began
        assert ledger.spent[0] == count

        cpu, began = cpu_s(), wall_s()
        found = sum(store.rollout(f"{number:016x}") is not None for number in range(timed))
        found_s, found_cpu_s = wall_s() - began, cpu_s() - cpu
        assert found == timed
        store.close()
        answer(
            written_s=written_s,
            written_cpu_s=written_cpu_s,
            opened_s=opened_s,
            found_s=found_s,
            found_cpu_s=found_cpu_s,
            bytes=path.stat().st_size,
            fsync_s=_fsync_s(Path(name)),
        )


def _fsync_s(folder: Path) -> float:
    """What this disk takes to promise 4 KB: what a power cut would cost to guard against."""
    with (folder / "sync").open("wb") as file:
        times = []
        for _ in range(20):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    main()
