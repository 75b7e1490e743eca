"""The store: a write that fails is told as such, and a file that is refused stays as it was."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import contextmanager

import pytest
from support.counting import Counting

from wer.errors import StoreError
from wer.records import Candidate, Experience, RefinementState, Reward, Skill, Usage
from wer.store import Store

TASK = Counting().tasks("small", "train")[0]
SKILL = Skill(name="up", description="d", body="## Workflow\n1. count up")
STATE = RefinementState(task=TASK, skill=SKILL, evidence=())
CANDIDATE = Candidate(state_id=STATE.id, index=0, text="t", reasoning="", skill=SKILL, well_formed=True)
EXPERIENCE = Experience(
    state=STATE, candidate=CANDIDATE, rollouts=(), reward=Reward(fmt=1.0, task=1.0, len=1.0, total=1.0)
)


@contextmanager
def full_disk():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.put_task(Counting().tasks("large", "test")[0]),
        lambda store: store.put_expect(TASK, 3),
        lambda store: store.put_group("train/0", [CANDIDATE]),
        lambda store: store.put_experience("train/0", EXPERIENCE),
        lambda store: store.add_spend("executor", Usage(calls=1)),
        lambda store: store.add_time("scan", 1.0),
        lambda store: store.put_metrics("train/0", 0, {"loss": 0.5}),
    ],
    ids=["task", "expect", "group", "experience", "spend", "time", "metrics"],
)
def test_a_full_disk_is_told_with_a_remedy_whatever_is_written(tmp_path, write):
    store = Store(tmp_path / "wer.sqlite", create=True)
    store.put_task(TASK)

    with full_disk(), pytest.raises(StoreError, match=r"free disk space .* go on with --resume"):
        write(store)

    write(store)


def test_a_group_without_candidates_is_nothing(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)

    store.put_group("train/0", [])

    assert store.group("train/0", STATE.id) == ()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("create table schema (version integer); insert into schema values (99)", "store schema 99"),
        ("create table notes (text)", "not of a run"),
    ],
)
def test_a_store_that_is_refused_is_left_as_it_was(tmp_path, made, message):
    path = tmp_path / "wer.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(made)
    db.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match=message):
        Store(path)

    assert path.read_bytes() == before
