"""``kill -9`` at any moment: what was finished is kept, and nothing is run twice."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from support import counting
from support.perform import configured, program

from wer import folders, plugins
from wer.configuration import RunConfig
from wer.display import Display
from wer.errors import StoreError
from wer.loop.opening import opened
from wer.store import Store

SKILL = "<think>why</think><skill>\nname: counting\ndescription: Count.\n## Workflow\n1. {}\n</skill>"


class Killable:
    """A run folder that ``wer run --resume`` goes on in, killed or not."""

    def __init__(self, root: Path, config: RunConfig) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self.folder = folders.create(root, config, command="run", now=now)
        self.log = root / "log"

    def go_on(self, fuse: tuple[str, int] | None = None) -> int | None:
        process = program(["run", "--resume", str(self.folder)], log=self.log, fuse=fuse)
        process.join()
        return process.exitcode

    def kill_at(self, moments: Sequence[tuple[str, int]]) -> None:
        for moment in moments:
            assert self.go_on(moment) == -signal.SIGKILL, moment

    def finish(self) -> Store:
        assert self.go_on() == 0, self.log.with_suffix(".txt").read_text()
        return self.store()

    def store(self) -> Store:
        return Store(self.folder / "wer.sqlite")

    def run(self) -> list[str]:
        """Keys of the rollouts that were really run and stored."""
        return self.log.read_text().split()


def groups(store: Store) -> dict[tuple[str, str], list[str]]:
    """What was written, by stage and state."""
    found: dict[tuple[str, str], list[str]] = {}
    for stage, experience in store.experiences():
        found.setdefault((stage, experience.state.id), []).append(experience.candidate.text)
    return found


def rollouts(store: Store) -> list[str]:
    return sorted(rollout.key for rollout, _, _ in store.rollouts())


def ends_as_an_unbroken_one(tmp_path: Path, config: RunConfig, moments: Sequence[tuple[str, int]]) -> None:
    unbroken = Killable(tmp_path / "unbroken", config).finish()
    killed = Killable(tmp_path / "killed", config)
    killed.kill_at(moments)

    resumed = killed.finish()

    assert len(killed.run()) == len(set(killed.run()))
    assert groups(resumed) == groups(unbroken)
    assert rollouts(resumed) == rollouts(unbroken)
    assert sorted(resumed.results()) == sorted(unbroken.results())
    assert "| refined" in (killed.folder / "report.md").read_text()
    assert list(killed.folder.rglob(".*")) == []


@pytest.mark.slow
def test_a_run_killed_at_random_moments_repeats_no_rollout_and_ends_as_an_unbroken_one(tmp_path):
    dice = random.Random(7)
    moments = [
        ("draft", dice.randint(1, 6)),
        *(("rollout", dice.randint(1, 12)) for _ in range(4)),
        ("trained refinement", dice.randint(1, 6)),
        ("test rollout", dice.randint(1, 8)),
        ("results", 1),
    ]

    ends_as_an_unbroken_one(tmp_path, configured(), moments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_training_run_killed_at_random_moments_ends_as_an_unbroken_one(tmp_path, seed):
    from support.tiny_writer import OPTIONS, make_folder

    steps = ("count up", "idle", *(f"try {times} times" for times in range(1, 9)))
    config = configured(
        backend="grpo",
        writer=str(make_folder(tmp_path / "writer", words=[SKILL.format(step) for step in steps])),
        seed_writer="scribe/a",
        merge_writer="scribe/a",
        training__phases=3,
        training__states_per_phase=4,
        training__top_k=12,
        training__max_response_tokens=6,
        optimizer={"grpo": {**OPTIONS, "batch": 1}},
    )
    dice = random.Random(seed)
    moments = [
        ("rollout", dice.randint(1, 20)),
        ("refinement", dice.randint(1, 6)),
        ("merge", dice.randint(1, 2)),
        ("sampling", dice.randint(1, 12)),
        ("update", dice.randint(1, 2)),
        ("half a checkpoint", dice.randint(1, 2)),
        ("rollout", dice.randint(1, 6)),
        ("half a model", 1),
        ("update", dice.randint(1, 2)),
        ("half a checkpoint", dice.randint(1, 2)),
        ("sampling", dice.randint(1, 12)),
        ("trained refinement", dice.randint(1, 6)),
        ("half a model", 1),
        ("test rollout", dice.randint(1, 8)),
    ]

    ends_as_an_unbroken_one(tmp_path, config, moments)


@pytest.mark.slow
def test_a_kill_costs_only_the_answers_that_were_not_stored_yet(tmp_path):
    unbroken = Killable(tmp_path / "unbroken", configured()).finish()
    killed = Killable(tmp_path / "killed", configured())

    killed.kill_at([("draft", 3), ("refinement", 4)])

    asked = {role: usage.calls for role, usage in killed.finish().spend().items()}
    expected = {role: usage.calls for role, usage in unbroken.spend().items()}
    answered, kept = 6, 3  # all states are asked at the same time, and each group is stored by itself
    assert asked["writer"] == expected["writer"] + answered - kept
    assert asked["seed writer"] == expected["seed writer"] + 1


class Telling(Store):
    """A store that says when time is booked."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        super().__init__(path, create=create)
        self.booked = asyncio.Event()

    def add_time(self, stage: str, seconds: float) -> None:
        super().add_time(stage, seconds)
        self.booked.set()


async def test_the_time_of_a_stage_is_stored_while_it_lasts(tmp_path):
    store = Telling(tmp_path / "wer.sqlite", create=True)
    found = plugins.load(extra=(counting,))
    with Display(Console(quiet=True)) as display:
        async with opened(configured(), folder=tmp_path, store=store, plugins=found, display=display):
            display.stage("thinking", 0)

            await store.booked.wait()

            before = store.times()["thinking"]
        assert store.times()["thinking"] > before > 0


def test_a_store_of_another_schema_is_refused_by_number(tmp_path):
    path = tmp_path / "wer.sqlite"
    Store(path, create=True).close()
    with sqlite3.connect(path) as db:
        db.execute("update schema set version = 99")
    db.close()

    with pytest.raises(StoreError, match=r"schema 99, and this WER reads schema 1"):
        Store(path)
