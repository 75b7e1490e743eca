"""Faults of machines and services: each is tried again and counted, and none is a failed task."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType

import pytest
from attrs import evolve
from support import census, counting, paying, tiers
from support.mock_openai import (
    answers,
    breaks_off,
    fails,
    hangs,
    resets,
    sends_bytes,
    sends_json,
)
from support.paying import Cashier
from support.perform import configured, perform

from wer import hookimpl
from wer.configuration import RunConfig
from wer.contracts import Episode, Roles
from wer.errors import ModelUnavailable
from wer.records import Json, JsonObject, SandboxSpec, Split, Task, Turn
from wer.reports.faults import faults_line
from wer.reports.reporting import write_report
from wer.store import Store

FAULTS = {
    "429": fails(429, retry_after="0"),
    "500": fails(500),
    "503": fails(503),
    "connection reset": resets(),
    "time-out": hangs(),
    "truncated answer": breaks_off(),
    "malformed JSON": sends_bytes(b'{"choices": [{'),
    "empty answer": sends_bytes(b""),
    "wrong content type": sends_bytes(b"<html>busy</html>", content_type="text/html"),
    "error instead of an answer": sends_json({"error": {"message": "upstream died"}}),
    "no chat completion": sends_json({"choices": []}),
    "empty reply": answers({"content": ""}, completion_tokens=0),
}


def configured_for(cashier: Cashier, **overrides: object) -> RunConfig:
    model = f"hasty/m@{cashier.url}"
    config = configured(
        agent="asker",
        concurrency=4,
        training__phases=1,
        training__states_per_phase=3,
        evaluation__trials=1,
        **overrides,
    )
    return evolve(config, executor=model, writer=model, seed_writer=model, merge_writer=model)


def outcome(store: Store) -> list[object]:
    """What the run found: every verdict, candidate and result."""
    verdicts = sorted((rollout.key, rollout.verdict.passed) for rollout, _, _ in store.rollouts())
    written = sorted((found.candidate.id, found.reward.total) for _, found in store.experiences())
    return [verdicts, written, sorted(store.results())]


def counted(store: Store) -> Counter[str]:
    found: Counter[str] = Counter()
    for kind, _, count in store.faults():
        found[kind] += count
    return found


@pytest.mark.slow
def test_faults_of_a_model_server_are_counted_in_the_report_and_change_no_figure(tmp_path):
    with Cashier() as cashier:
        config = configured_for(cashier)
        clean = perform(tmp_path / "clean", config, extra=(paying,))
        cashier.fail(*(2 * [*FAULTS.values()]), every=3)

        store = perform(tmp_path / "faulty", config, extra=(paying,))

    report = write_report(tmp_path / "faulty", store, config).read_text()
    assert counted(store) == dict.fromkeys(FAULTS, 2)
    assert outcome(store) == outcome(clean)
    assert all(f"2 \N{MULTIPLICATION SIGN} {kind}" in report for kind in FAULTS)
    assert "none counts as a failed task" in report
    assert clean.faults() == []


@pytest.mark.slow
def test_a_server_that_dies_and_comes_back_changes_no_figure(tmp_path):
    with Cashier() as cashier:
        config = configured_for(cashier, limits__retries=9)
        clean = perform(tmp_path / "clean", config, extra=(paying,))
        cashier.fail(lambda body: (cashier.die(for_s=0.3), resets()(body))[1])

        store = perform(tmp_path / "faulty", config, extra=(paying,))

    assert outcome(store) == outcome(clean)
    assert counted(store).keys() <= {"connection reset", "unreachable"}
    assert counted(store).total() >= 2


@pytest.mark.slow
def test_a_rollout_that_can_not_be_had_ends_the_run_with_the_cause_and_is_had_on_resume(tmp_path):
    with Cashier() as cashier:
        config = configured_for(cashier, limits__retries=1)
        clean = perform(tmp_path / "clean", config, extra=(paying,))
        cashier.fail(*[fails(503, message="down for the night", retry_after="0")] * 200)

        with pytest.raises(ModelUnavailable, match=r"503.*down for the night"):
            perform(tmp_path / "faulty", config, extra=(paying,))
        stored = Store(tmp_path / "faulty" / "wer.sqlite").count_rollouts()
        cashier.faults.clear()
        store = perform(tmp_path / "faulty", config, extra=(paying,))

    assert stored == 0
    assert outcome(store) == outcome(clean)


class Breaking(counting.Counting):
    """Counts in a real sandbox, which breaks in another way at the first opening of each task."""

    def __init__(self, options: JsonObject | None = None) -> None:
        super().__init__(options)
        self.met: set[str] = set()
        self.ways = [*WAYS.values()] * 2

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        return [evolve(task, env="breaking") for task in super().tasks(domain, split)]

    def sandbox(self, domain: str) -> SandboxSpec:
        return tiers.spec()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> BreakingSession:
        if task.id not in self.met and self.ways:
            self.met.add(task.id)
            return BreakingSession(task, episode, self.ways.pop(0))
        return BreakingSession(task, episode, None)


async def kill_the_worker(episode: Episode) -> None:
    for pid in census.servers("process"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await episode.request("hang", {})


WAYS: Mapping[str, Callable[[Episode], Awaitable[object]]] = {
    "killed": kill_the_worker,
    "hung": lambda episode: episode.request("hang", {}, timeout_s=0.5),
    "died": lambda episode: episode.request("die", {"number": 9}),
    "flooding": lambda episode: episode.request("flood", {}),
    "babbling": lambda episode: episode.request("babble", {"text": "no json\n"}),
    "out of memory": lambda episode: episode.request("hoard", {}),
}


class BreakingSession(counting.CountingSession):
    def __init__(
        self, task: Task, episode: Episode, way: Callable[[Episode], Awaitable[object]] | None
    ) -> None:
        super().__init__(task, Adding(episode))
        self._way = way
        self._broken = episode

    async def begin(self) -> Turn:
        if self._way is not None:
            await self._way(self._broken)
        return await super().begin()


class Adding:
    """Speaks to the attacked domain as the counting session speaks to memory."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        return await self._episode.request("count", {"by": int(method == "up")}, timeout_s=timeout_s)

    async def close(self) -> None: ...


class Whole(Breaking):
    def __init__(self, options: JsonObject | None = None) -> None:
        super().__init__(options)
        self.ways = []


def offering(environment: type[Breaking]) -> ModuleType:
    module = ModuleType("breaking")
    module.wer_environments = hookimpl(lambda: {"breaking": environment})  # type: ignore[attr-defined]
    return module


@pytest.mark.slow
def test_sandboxes_that_break_are_counted_in_the_report_and_change_no_figure(tmp_path):
    config = configured(
        env=["breaking"],
        sandbox="process",
        concurrency=1,
        workers=1,
        training__phases=1,
        training__states_per_phase=2,
        evaluation__trials=1,
        refinement__rounds=1,
    )

    with tiers.path_of("process"):
        clean = perform(tmp_path / "clean", config, extra=(offering(Whole),))
        store = perform(tmp_path / "faulty", config, extra=(offering(Breaking),))

    assert outcome(store) == outcome(clean)
    assert clean.faults() == []
    assert counted(store) == {
        "sandbox dead": 4,
        "sandbox protocol": 4,
        "sandbox hung": 2,
        "sandbox out of memory": 2,
    }
    assert faults_line(store) in write_report(tmp_path / "faulty", store, config).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0], ids=["forwards", "backwards"])
def test_a_clock_that_jumps_changes_no_figure_and_no_time(tmp_path, monkeypatch, jump_s):
    clean = perform(tmp_path / "clean", configured())
    true, calls = time.time, iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: true() + (next(calls) % 2) * jump_s)

    store = perform(tmp_path / "jumping", configured())

    assert outcome(store) == outcome(clean)
    assert store.faults() == []
    assert all(0 <= seconds < 3600 for seconds in store.times().values())
