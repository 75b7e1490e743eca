"""For Skill-R1: an evaluation that pays a skill's rollouts by its text, and a model that writes what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve

from wer.contracts import OptimizerSetup
from wer.plugins import load
from wer.records import (
    Candidate,
    End,
    Evidence,
    Experience,
    JsonObject,
    Message,
    RefinementState,
    Reply,
    Reward,
    Rollout,
    Sampling,
    Skill,
    Step,
    ToolSpec,
    Trajectory,
    Usage,
    Verdict,
)

GOOD, BAD = "Look before you act.", "Act at once."


def document(step: str) -> str:
    return f"<think>\nWhy.\n</think>\n<skill>\nname: act\ndescription: Act.\n## Workflow\n1. {step}\n</skill>"


def rollout(state: RefinementState, skill: Skill, seed: int, score: float) -> Rollout:
    said = f"attempt {seed} of {skill.body.splitlines()[-1]}" + " and so on" * 40
    end = End(by="user")
    return Rollout(
        key=f"{state.task.id} {skill.id} {seed}",
        task_id=state.task.id,
        skill_id=skill.id,
        seed=seed,
        trajectory=Trajectory(messages=("do it",), steps=(Step(turn=0, text=said),), end=end, seed=seed),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(score=score, passed=score == 1.0),
    )


def by_step(skill: Skill) -> Sequence[float]:
    """Good skills pass twice, bad ones never, others once."""
    return (1.0, 1.0) if GOOD in skill.body else (0.0, 0.0) if BAD in skill.body else (1.0, 0.0)


class PaidBySkill:
    """An `Evaluate` that runs nothing; groups are recorded, as a store would keep them."""

    def __init__(
        self, pay: Callable[[Skill], Sequence[float]] = by_step, *, fail_at: int | None = None
    ) -> None:
        self.groups: dict[str, list[Candidate]] = {}
        self.pay = pay
        self.fail_at = fail_at
        self.calls = 0

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        self.calls += 1
        for state, candidate in proposals:
            self.groups[state.id] = [candidate]
        if self.calls == self.fail_at:
            raise RuntimeError("killed")
        return [self._experience(state, candidate) for state, candidate in proposals]

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        return self.groups.get(state.id, ())

    def _experience(self, state: RefinementState, candidate: Candidate) -> Experience:
        skill = candidate.skill
        scores = () if skill is None else self.pay(skill)
        rollouts = (
            tuple(rollout(state, skill, seed, score) for seed, score in enumerate(scores)) if skill else ()
        )
        task = sum(scores) / len(scores) if scores else 0.0
        reward = Reward(fmt=0.0, task=task, len=0.0, total=task / 3)
        return Experience(state=state, candidate=candidate, rollouts=rollouts, reward=reward)


class Scribe:
    """Writes one answer after the other, and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.requests: list[str] = []

    @property
    def identity(self) -> JsonObject:
        return {"provider": "scribe"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        self.requests.append(messages[-1].content)
        answer = self._answers[(len(self.requests) - 1) % len(self._answers)]
        return Reply(text=answer, usage=Usage(calls=1, prompt_tokens=9, completion_tokens=3))

    async def close(self) -> None: ...


def lending(setup: OptimizerSetup, options: Mapping[str, object]) -> OptimizerSetup:
    """The setup with policies to open, as a run gives it."""
    policies = load().policies
    return evolve(
        setup,
        options={},
        open_policy=lambda name: policies.make(name, evolve(setup, options=dict(options))),
    )
