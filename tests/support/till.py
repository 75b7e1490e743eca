"""The environment of a till, its verifier, and faulty variants of both, for tests of the checks of plugins."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from attrs import evolve

from wer import hookimpl
from wer.contracts import Episode, Roles, Session
from wer.records import (
    Answer,
    End,
    Evidence,
    Json,
    Observation,
    SandboxSpec,
    Split,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    TurnEvidence,
    Verdict,
)

DOMAINS = Path(__file__).parent / "domains"
if str(DOMAINS) not in sys.path:
    sys.path.append(str(DOMAINS))

_AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
_TOOLS = tuple(ToolSpec(name=name, description="", parameters=_AMOUNT) for name in ("add", "take"))


class Till:
    """Two training and two test tasks."""

    world = "Till"

    def __init__(self, options: Mapping[str, Json] | None = None) -> None:
        self.books: list[str] = []

    def domains(self) -> Sequence[str]:
        return ("till",)

    def verifier(self) -> str:
        return "till_total"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        return [self.task(number, split) for number in ((3, 5) if split == "train" else (4, 6))]

    def task(self, number: int, split: Split) -> Task:
        return Task(
            id=f"till/{number}",
            env="till",
            domain="till",
            split=split,
            turns=(f"Add {number}, and take 1.",),
            tools=_TOOLS,
            setup={"total": number},
        )

    def sandbox(self, domain: str) -> SandboxSpec:
        return SandboxSpec(name="till", domain=f"wer_till:{self.world}", packages=("wer_till",))

    def roles(self) -> Sequence[str]:
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        return TillSession(task, episode)

    async def expect(self, task: Task, episode: Episode) -> Json:
        return {"total": 2 * task.setup["total"] - 1}

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        number = task.setup["total"]
        calls = (
            ToolCall(name="add", arguments={"amount": number}),
            ToolCall(name="take", arguments={"amount": 1}),
        )
        return (calls,)


class TillSession:
    def __init__(self, task: Task, episode: Episode) -> None:
        self.setup = task.setup
        self.message = task.turns[0]
        self.episode = episode
        self.results: list[str] = []

    async def begin(self) -> Turn:
        await self.episode.request("reset", self.setup)
        return Turn(message=self.message, index=0)

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        answers = [
            await self.episode.request("call", {"name": call.name, "arguments": call.arguments})
            for call in calls
        ]
        self.results += [answer["text"] for answer in answers]
        return Answer(observations=tuple(Observation(**answer) for answer in answers))

    async def say(self, text: str) -> Turn | End:
        return End(by="user")

    async def evidence(self) -> Evidence:
        state = await self.episode.request("export", {})
        turn = TurnEvidence(state=state, results=tuple(self.results), calls=len(self.results))
        return Evidence(turns=(turn,), end=End(by="user"))

    async def close(self) -> None:
        await self.episode.close()


class Total:
    """Passes when the till holds what is expected."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        passed = evidence.turns[-1].state == expect
        return Verdict(score=float(passed), passed=passed)


# -- environments that break a rule


class Unstable(Till):
    """Names its tasks anew in every load."""

    def task(self, number: int, split: Split) -> Task:
        task = super().task(number, split)
        return Task(
            id=f"till/{time.monotonic_ns()}",
            env=task.env,
            domain=task.domain,
            split=split,
            turns=task.turns,
            tools=task.tools,
            setup=task.setup,
        )


class Secretive(Till):
    """Has a tool that no reference calls."""

    world = "Noting"

    def task(self, number: int, split: Split) -> Task:
        note = ToolSpec(name="note", description="", parameters=_AMOUNT)
        return evolve(super().task(number, split), tools=(*_TOOLS, note))


class Overlapping(Till):
    """Measures what was learnt from, under another id."""

    def task(self, number: int, split: Split) -> Task:
        task = super().task(3 if number == 4 else number, split)
        if number != 4:
            return task
        return Task(
            id="till/4",
            env="till",
            domain="till",
            split=split,
            turns=task.turns,
            tools=_TOOLS,
            setup=task.setup,
        )


class Shared(Till):
    """Keeps what agents did on the environment."""

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        session = TillSession(task, episode)
        session.results = self.books
        return session


class OneSession(Till):
    """Has one session for all episodes."""

    session: TillSession | None = None

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        if self.session is None:
            self.session = TillSession(task, episode)
        self.session.episode = episode
        return self.session


class OnTheHost(Till):
    """Keeps a book on the host."""

    book = Path("/dev/null")

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        with self.book.open("a") as book:
            book.write(task.id)
        return await super().open(task, episode, roles, seed)


class Leaving(Till):
    """Starts a program beside each episode, and forgets it."""

    started: list[subprocess.Popen[bytes]] = []  # noqa: RUF012 - for the test to end them

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        self.started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))  # noqa: ASYNC220
        return await super().open(task, episode, roles, seed)


def in_world(world: str) -> type[Till]:
    """The till with another domain in its sandbox."""
    return type(world, (Till,), {"world": world})


# -- verifiers that break a rule


class Everything:
    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        return Verdict(score=1.0, passed=True)


class Nothing:
    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        return Verdict(score=0.0, passed=False)


class Busy:
    """Asks only whether something was done."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        passed = any(step.calls for step in trajectory.steps)
        return Verdict(score=float(passed), passed=passed)


class Flaky(Total):
    """Throws a die beside."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        found = super().judge(task, trajectory, evidence, expect)
        return Verdict(score=0.5 if random.random() < 0.3 else found.score, passed=found.passed)


class Counting(Total):
    """Judges by how much it has judged before."""

    def __init__(self) -> None:
        self.judged = 0

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        self.judged += 1
        found = super().judge(task, trajectory, evidence, expect)
        return found if self.judged < 9 else Verdict(score=0.0, passed=False)


class Writing(Total):
    """Keeps a book of its verdicts."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        with suppress(OSError):
            Path("/no-such-folder/verdicts").write_text("another")
        return super().judge(task, trajectory, evidence, expect)


class NotANumber:
    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        return Verdict(score=float("nan"), passed=False)


def plugin(
    environment: Callable[..., object] = Till, verifier: Callable[[], object] = Total, name: str = "till"
) -> ModuleType:
    """A plugin module that offers them."""
    module = ModuleType(f"wer_plugin_{name}")
    module.wer_environments = hookimpl(lambda: {name: environment})  # type: ignore[attr-defined]
    module.wer_verifiers = hookimpl(lambda: {"till_total": verifier})  # type: ignore[attr-defined]
    return module
