"""``kill -9`` at any moment: what was finished is kept, and nothing is run twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.perform import configured, perform

from wer.store import Store

_PROGRAM = Path(__file__).parent.parent / "support" / "perform.py"


def start(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": str(_PROGRAM.parent.parent)}
    return subprocess.Popen([sys.executable, str(_PROGRAM), str(folder), str(log)], env=environ)


def stored(folder: Path) -> int:
    path = folder / "wer.sqlite"
    if not path.is_file():
        return 0
    store = Store(path)
    try:
        return store.count_rollouts()
    finally:
        store.close()


@pytest.mark.slow
def test_a_run_killed_at_random_moments_repeats_no_rollout_and_ends_as_an_unbroken_one(tmp_path):
    dice = random.Random(7)
    folder, log = tmp_path / "run", tmp_path / "log"
    unbroken = perform(tmp_path / "unbroken", configured())
    total = unbroken.count_rollouts()

    goals = sorted(dice.sample(range(1, total), 6))
    for goal in goals:
        program = start(folder, log)
        while program.poll() is None and stored(folder) < goal:
            time.sleep(0.02)
        program.send_signal(signal.SIGKILL)
        program.wait()
    assert start(folder, log).wait() == 0

    run = log.read_text().split()
    resumed = Store(folder / "wer.sqlite")
    assert len(run) == len(set(run))
    assert resumed.count_rollouts() == total
    assert sorted(resumed.results()) == sorted(unbroken.results())


def test_a_store_of_another_schema_is_refused_by_number(tmp_path):
    import sqlite3

    path = tmp_path / "wer.sqlite"
    Store(path, create=True).close()
    with sqlite3.connect(path) as db:
        db.execute("update schema set version = 99")
    db.close()

    from wer.errors import StoreError

    with pytest.raises(StoreError, match=r"schema 99, and this WER reads schema 1"):
        Store(path)
