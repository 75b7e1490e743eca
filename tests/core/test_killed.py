"""A hundred kills, at random moments of every stage: nothing is lost, and nothing is paid for twice."""

from __future__ import annotations

import random
import re
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import evolve
from support.paying import Cashier, kept
from support.perform import configured, fill_the_disk, program
from support.tiny_writer import OPTIONS, make_folder

from wer import folders
from wer.configuration import RunConfig
from wer.store import Store

SKILL = "<think>why</think><skill>\nname: counting\ndescription: Count.\n## Workflow\n1. {}\n</skill>"
SERVER = "anywhere"
"""The server kills whoever asks it, some milliseconds later: in the midst of whatever then runs."""

LOOP = (
    *("draft", "question", "answer", "rollout", "verdict", "stored rollout", "half a transaction"),
    *("group", "reward", "refinement", "merge", "publishing", "test rollout", "results", "report"),
)
LEARNING = ("sampling", "update", "half a checkpoint", "half a model")


class Paid:
    """A run folder that ``wer run --resume`` goes on in, and the bill of its starts."""

    def __init__(self, root: Path, config: RunConfig, cashier: Cashier) -> None:
        root.mkdir()
        self.folder = folders.create(root, config, command="run", now=datetime(2026, 1, 1, tzinfo=UTC))
        self.log = root / "log"
        self.cashier = cashier
        self.kept: set[str] = set()
        self.again: list[str] = []
        cashier.receipts.clear()

    def start(
        self, moment: str = "", count: int = 0, *, wait_s: float = 0.0, diary: Sequence[str] = ()
    ) -> bool:
        """Go on with the run, to its end or until it is killed: True when it was."""
        asked = len(self.cashier.receipts)
        fuse = (moment, count) if moment not in ("", SERVER) else None
        process = program(["run", "--resume", str(self.folder)], log=self.log, fuse=fuse, diary=diary)
        if moment == SERVER:
            self.cashier.kill(process.pid, after=count, wait_s=wait_s)
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL), self.log.with_suffix(".txt").read_text()
        self.again += [receipt for receipt in self.cashier.receipts[asked:] if receipt in self.kept]
        self.kept = kept(self.folder / "wer.sqlite")
        return process.exitcode != 0

    def fill_the_disk(self, moment: str) -> str:
        """Go on until the disk is full at a moment; give what was printed from then on."""
        log = self.log.with_suffix(".txt")
        before = log.stat().st_size if log.exists() else 0
        words = ["run", "--resume", str(self.folder)]
        process = program(words, log=self.log, fuse=(moment, 1), worst=fill_the_disk)
        process.join()
        assert process.exitcode == 2, log.read_text()
        return log.read_text()[before:]

    def kill(self, plan: Sequence[tuple[str, int]], dice: random.Random) -> Counter[str]:
        """Have it killed by a plan; tell which moments came before its end."""
        met: Counter[str] = Counter()
        for moment, count in plan:
            met[moment] += self.start(moment, count, wait_s=dice.uniform(0.0, 0.03))
        return +met

    def ran(self) -> list[str]:
        """Keys of the rollouts that were really run and stored."""
        return self.log.read_text().split()

    def outcome(self) -> Mapping[str, object]:
        """All that a run is for: what was written, run, judged, rewarded, measured and published."""
        store = Store(self.folder / "wer.sqlite")
        try:
            return {
                "drafts and merges": {name: store.documents(name) for name in ("seed", "merge")},
                "candidates": sorted(
                    (stage, found.candidate.id, found.candidate.text, found.reward.total)
                    for stage, found in store.experiences()
                ),
                "rollouts": sorted(rollout.key for rollout, _, _ in store.rollouts()),
                "results": sorted(store.results()),
                "published": store.documents("published"),
                "skills": {
                    str(path.relative_to(self.folder)): path.read_text()
                    for path in self.folder.rglob("SKILL.md")
                },
                "table": re.findall(r"^\| .*\[.*$", (self.folder / "report.md").read_text(), re.MULTILINE),
                "weights": {
                    str(path.relative_to(self.folder)): path.read_bytes()
                    for path in (self.folder / "checkpoints").rglob("final/**/trained.safetensors")
                },
            }
        finally:
            store.close()


def drawn(diary: Sequence[str], kills: int, dice: random.Random) -> list[tuple[str, int]]:
    """Draw moments of an unbroken run, each kind at least once: after how many of its kind since the last to die."""
    kinds = sorted(set(diary))
    places = [dice.choice([place for place, moment in enumerate(diary) if moment == kind]) for kind in kinds]
    places += [diary.index("question") + 1, *dice.sample(range(len(diary)), kills)]
    places = sorted(set(places[:kills]))
    plan = []
    for last, place in pairwise([0, *places]):
        moment = diary[place]
        plan.append((moment, max(1, diary[last:place].count(moment))))
    kinds = [moment for moment, _ in plan]
    spare = [at for at, kind in enumerate(kinds) if kind in ("question", "answer") and kind in kinds[:at]]
    for at in dice.sample(spare, len(spare) // 2):
        plan[at] = (SERVER, plan[at][1])
    plan.insert(len(plan) // 2, (SERVER, 3))
    return plan


def killed(root: Path, config: RunConfig, moments: Sequence[str], kills: int, runs: int) -> Counter[str]:
    """Compare an unbroken run with others that are killed so often together, and tell the moments."""
    dice = random.Random(7)
    met: Counter[str] = Counter()
    with Cashier() as cashier:
        config = _served(config, f"openai/m@{cashier.url}")
        unbroken = Paid(root / "unbroken", config, cashier)
        assert not unbroken.start(diary=moments)
        assert set(cashier.counts().values()) == {1}, "an unbroken run pays for nothing twice"
        bill, expected = set(cashier.receipts), unbroken.outcome()
        diary = unbroken.log.with_suffix(".diary").read_text().splitlines()
        assert set(diary) == set(moments)
        for number in range(runs):
            run = Paid(root / f"killed-{number}", config, cashier)
            met += run.kill(drawn(diary, kills // runs, dice), dice)
            assert not run.start()
            assert run.again == [], "nothing that the store held was asked for again"
            assert set(cashier.receipts) == bill
            assert len(run.ran()) == len(set(run.ran()))
            assert run.outcome() == expected
            assert list(run.folder.rglob(".*")) == []
            assert folders.holder(run.folder) is None
    return met


def _served(config: RunConfig, model: str) -> RunConfig:
    return evolve(
        config, executor=model, writer=config.writer or model, seed_writer=model, merge_writer=model
    )


def _trained(root: Path) -> RunConfig:
    """A run that trains a tiny writer on its own."""
    steps = ("count up", "idle", *(f"try {times} times" for times in range(1, 9)))
    return configured(
        agent="asker",
        concurrency=4,
        backend="grpo",
        writer=str(make_folder(root / "writer", words=[SKILL.format(step) for step in steps])),
        training__states_per_phase=4,
        evaluation__trials=1,
        training__top_k=12,
        training__max_response_tokens=6,
        optimizer={"grpo": {**OPTIONS, "batch": 1}},
    )


@pytest.mark.slow
def test_a_run_killed_at_sixty_random_moments_pays_for_nothing_twice_and_ends_as_an_unbroken_one(tmp_path):
    config = configured(agent="asker", concurrency=4, training__states_per_phase=5, evaluation__trials=1)

    met = killed(tmp_path, config, LOOP, 75, runs=3)

    assert met.keys() == {*LOOP, SERVER}
    assert met.total() >= 58


@pytest.mark.slow
def test_a_training_run_killed_at_forty_random_moments_pays_for_nothing_twice_and_ends_as_an_unbroken_one(
    tmp_path,
):
    config = _trained(tmp_path)

    met = killed(tmp_path, config, (*LOOP, *LEARNING), 54, runs=2)

    assert met.keys() >= {*LEARNING, SERVER, "reward"}
    assert met.total() >= 42


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_moment_ends_the_run_with_a_remedy_and_loses_nothing(tmp_path):
    with Cashier() as cashier:
        config = _served(_trained(tmp_path), f"openai/m@{cashier.url}")
        unbroken = Paid(tmp_path / "unbroken", config, cashier)
        unbroken.start()
        full = Paid(tmp_path / "full", config, cashier)
        said = []

        for moment in (
            "answer",
            "stored rollout",
            "half a checkpoint",
            "half a model",
            "publishing",
            "report",
        ):
            said.append(full.fill_the_disk(moment))
        assert not full.start()

    assert all("Traceback" not in words and "go on with: wer run --resume" in words for words in said), said
    assert all("space" in words for words in said), said
    assert full.outcome() == unbroken.outcome()
    assert list(full.folder.rglob(".*")) == []
