"""A plugin whose worlds are in memory and whose agent asks its model a given number of times: what is left is WER."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen
from bench_prompt import PROMPT, USER

from wer import hookimpl
from wer.contracts import Environment, Episode, Executor, Model, Roles, Sandbox, Session, Verifier
from wer.records import (
    Answer,
    End,
    Evidence,
    Json,
    JsonObject,
    Message,
    Observation,
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

TOOL = ToolSpec(
    name="move",
    description="Move a file.",
    parameters={"type": "object", "properties": {"source": {"type": "string"}, "target": {"type": "string"}}},
)
CALL = ToolCall(name="move", arguments={"source": "notes/report.txt", "target": "archive/report-2026.txt"})
SKILL = Skill(
    name="move", description="Move files.", body="## Workflow\n1. List the folder.\n2. Move the file."
)


class Moving:
    """One domain of many tasks; a rollout's world is a dictionary."""

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._tasks = int(options.get("tasks", 100))

    def domains(self) -> Sequence[str]:
        """One."""
        return ("files",)

    def verifier(self) -> str:
        """Its own."""
        return "moved"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """As many as were asked for."""
        return tuple(
            Task(
                id=f"moving/{split}-{number}",
                env="moving",
                domain=domain,
                split=split,
                turns=(USER,),
                tools=(TOOL,),
            )
            for number in range(self._tasks)
        )

    def sandbox(self, domain: str) -> SandboxSpec:
        """One that is never built."""
        return SandboxSpec(name="moving", domain="moving:world")

    def roles(self) -> Sequence[str]:
        """No other model takes part."""
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin a rollout."""
        return _Session()

    async def expect(self, task: Task, episode: Episode) -> Json:
        """The file, moved."""
        return {"report": "archive"}


class _Session:
    def __init__(self) -> None:
        self._results: list[str] = []

    async def begin(self) -> Turn:
        return Turn(message=USER, index=0)

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        self._results += ["moved"] * len(calls)
        return Answer(observations=tuple(Observation(text="moved") for _ in calls))

    async def say(self, text: str) -> Turn | End:
        return End(by="agent")

    async def evidence(self) -> Evidence:
        turn = TurnEvidence(
            state={"report": "archive"}, results=tuple(self._results), calls=len(self._results)
        )
        return Evidence(turns=(turn,), end=End(by="agent"))

    async def close(self) -> None:
        self._results.clear()


class _Moved:
    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        passed = evidence.turns[-1].state == expect
        return Verdict(score=float(passed), passed=passed)


@frozen
class Asking:
    """An agent that asks, moves, and asks again, ``options.calls`` times; with 0 it never asks a model."""

    model: Model
    calls: int

    @property
    def identity(self) -> JsonObject:
        """An agent a number of calls."""
        return {"agent": "asking", "calls": self.calls}

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Make one call of the tool after each reply."""
        turn = await session.begin()
        assert isinstance(turn, Turn)
        prompt = (Message(role="system", content=PROMPT), Message(role="user", content=turn.message))
        usage, steps = Usage(), []
        for number in range(max(1, self.calls)):
            text = "done"
            if self.calls:
                reply = await self.model.complete(prompt, task.tools, Sampling(seed=seed + number))
                usage, text = usage + reply.usage, reply.text
            answer = await session.call((CALL,))
            steps.append(Step(turn=0, text=text, calls=(CALL,), observations=answer.observations))
        end = await session.say("done")
        assert isinstance(end, End)
        return Trajectory(messages=(turn.message,), steps=tuple(steps), end=end, seed=seed, usage=usage)


class _Episode:
    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        return None

    async def close(self) -> None:
        return None


class _Memory:
    tier = "memory"

    def unavailable(self) -> str | None:
        return None

    async def start(self, spec: SandboxSpec, workers: int) -> _Memory:
        return self

    def reap(self) -> Sequence[str]:
        return ()

    async def lease(self) -> Episode:
        return _Episode()

    async def close(self) -> None:
        return None


@hookimpl
def wer_environments() -> Mapping[str, Callable[[Mapping[str, Json]], Environment]]:
    """Offer the world."""
    return {"moving": Moving}


@hookimpl
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Offer its verifier."""
    return {"moved": _Moved}


@hookimpl
def wer_executors() -> Mapping[str, Callable[[Model, Mapping[str, Json]], Executor]]:
    """Offer the agent."""
    return {"asking": lambda model, options: Asking(model, int(options.get("calls", 1)))}


@hookimpl
def wer_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:
    """Offer no isolation at all."""
    return {"bench_memory": _Memory}
