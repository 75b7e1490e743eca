"""A small real world for tests of the loop: an environment, an agent, a writer and a sandbox in memory.

The task is to count to a number; the agent gets there when its skill says "count up", and
sometimes (by its seed) when the skill says "try". Everything is a plain implementation of
the public contracts, registered like any plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from wer import hookimpl
from wer.contracts import Episode, Roles
from wer.errors import ModelUnavailable, SandboxError
from wer.records import (
    Answer,
    End,
    Evidence,
    Json,
    JsonObject,
    Message,
    Observation,
    Reply,
    Sampling,
    SandboxSpec,
    Skill,
    Split,
    Step,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    TurnEvidence,
    Usage,
    Verdict,
)

UP = ToolSpec(name="up", description="Count one up.", parameters={"type": "object", "properties": {}})


class Counting:
    """Six training and eight test tasks in two domains."""

    def __init__(self, options: JsonObject | None = None) -> None:
        self.opened = 0

    def domains(self) -> Sequence[str]:
        return ("small", "large")

    def verifier(self) -> str:
        return "reached"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        first, count = (2, 3) if split == "train" else (5, 4)
        return tuple(
            Task(
                id=f"counting/{domain}-{number}",
                env="counting",
                domain=domain,
                split=split,
                turns=(f"Count to {number}.",),
                tools=(UP,),
                setup={"goal": number},
            )
            for number in range(first, first + count)
        )

    def sandbox(self, domain: str) -> SandboxSpec:
        return SandboxSpec(name="counting", domain="counting:world")

    def roles(self) -> Sequence[str]:
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> CountingSession:
        self.opened += 1
        return CountingSession(task, episode)

    async def expect(self, task: Task, episode: Episode) -> Json:
        return task.setup["goal"]


class CountingSession:
    def __init__(self, task: Task, episode: Episode) -> None:
        self._task = task
        self._episode = episode
        self._results: list[str] = []

    async def begin(self) -> Turn:
        return Turn(message=self._task.turns[0], index=0)

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        seen = []
        for call in calls:
            answer = await self._episode.request(call.name, call.arguments)
            seen.append(Observation(text=str(answer)))
        self._results += [observation.text for observation in seen]
        return Answer(observations=tuple(seen))

    async def say(self, text: str) -> Turn | End:
        return End(by="agent")

    async def evidence(self) -> Evidence:
        count = await self._episode.request("count", {})
        turn = TurnEvidence(state=count, results=tuple(self._results), calls=len(self._results))
        return Evidence(turns=(turn,), end=End(by="agent"))

    async def close(self) -> None: ...


class MemoryEpisode:
    def __init__(self) -> None:
        self._count = 0

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        await asyncio.sleep(0)
        if method == "up":
            self._count += 1
        return self._count

    async def close(self) -> None: ...


class MemoryPool:
    tier = "memory (no isolation: tests only)"

    def __init__(self, dying: int) -> None:
        self._dying = dying
        self.leases = 0

    async def lease(self) -> MemoryEpisode:
        self.leases += 1
        if self.leases <= self._dying:
            raise SandboxError("worker 0 died", cause="dead", stderr_tail="killed by a test")
        return MemoryEpisode()

    async def close(self) -> None: ...


class MemorySandbox:
    """Gives episodes in memory; the first ``dying`` leases fail as a dead sandbox does."""

    def __init__(self, dying: int = 0) -> None:
        self._dying = dying

    def unavailable(self) -> str | None:
        return None

    async def start(self, spec: SandboxSpec, workers: int) -> MemoryPool:
        return MemoryPool(self._dying)

    def reap(self) -> Sequence[str]:
        return ()


class Reached:
    """Passes when the count is the goal."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        passed = evidence.turns[-1].state == expect
        return Verdict(
            score=float(passed), passed=passed, diagnostics=() if passed else ("the count is wrong",)
        )


class Counter:
    """A frozen agent that reads its skill: "count up" works, "try" works on half of the seeds."""

    def __init__(self, model: object, options: JsonObject) -> None:
        self.runs: list[tuple[str, str, int]] = []

    @property
    def identity(self) -> JsonObject:
        return {"agent": "counter"}

    async def execute(self, task: Task, skill: Skill, session: CountingSession, seed: int) -> Trajectory:
        self.runs.append((task.id, skill.id, seed))
        turn = await session.begin()
        able = "count up" in skill.body or ("try" in skill.body and seed % 2 == 0)
        calls = tuple(
            ToolCall(name="up", arguments={}) for _ in range(int(task.setup["goal"]) if able else 1)
        )
        answer = await session.call(calls)
        steps = (
            Step(turn=0, text="", calls=calls, observations=answer.observations),
            Step(turn=0, text="done"),
        )
        end = await session.say("done")
        assert isinstance(end, End)
        return Trajectory(messages=(turn.message,), steps=steps, end=end, seed=seed)


class Writer:
    """A writer that answers in the right form: "try" at first, sometimes "count up" after evidence.

    Args:
        rest: What comes after ``scribe/``: ``NAME`` or ``NAME:failures``, the number of
            first calls that fail as a busy server does.
    """

    def __init__(self, rest: str) -> None:
        self._failures = int(rest.partition(":")[2] or 0)
        self.asked: list[tuple[Sequence[Message], Sampling]] = []

    @property
    def identity(self) -> JsonObject:
        return {"provider": "scribe"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        self.asked.append((messages, sampling))
        if len(self.asked) <= self._failures:
            raise ModelUnavailable("429: busy", retry_after_s=0.0)
        merging = "# Skill 1" in messages[-1].content
        learnt = "# Failure" in messages[-1].content and sampling.seed % 3 == 0
        step = (
            "count up to the number" if learnt or (merging and "count up" in messages[-1].content) else "try"
        )
        text = f"<think>why</think><skill>\nname: counting\ndescription: Count.\n## Workflow\n1. {step}\n</skill>"
        return Reply(text=text, usage=Usage(calls=1, prompt_tokens=100, completion_tokens=20))

    async def close(self) -> None: ...


@hookimpl
def wer_environments() -> Mapping[str, object]:
    return {"counting": Counting}


@hookimpl
def wer_verifiers() -> Mapping[str, object]:
    return {"reached": Reached}


@hookimpl
def wer_executors() -> Mapping[str, object]:
    return {"counter": Counter}


@hookimpl
def wer_models() -> Mapping[str, object]:
    return {"scribe": lambda setup: Writer(setup.name)}


@hookimpl
def wer_sandboxes() -> Mapping[str, object]:
    return {"memory": MemorySandbox, "dying": lambda: MemorySandbox(dying=2)}
