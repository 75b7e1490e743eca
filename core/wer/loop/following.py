"""The agent that does what the reference does: a success to learn from, and a test of the verifier."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from wer.contracts import Environment, Referenced, Session
from wer.loop.rollouts import Scheduler
from wer.records import (
    NO_SKILL,
    End,
    JsonObject,
    Rollout,
    Skill,
    Step,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Unit,
    content_hash,
)

_SEED = 0


@frozen(kw_only=True)
class Following:
    """An executor that makes given calls, a list a turn, and says nothing.

    A simulated user would take silence for a fault: there it leaves after the first turn's calls.
    """

    calls: Sequence[Sequence[ToolCall]]

    @property
    def identity(self) -> JsonObject:
        """Without a model: one agent for equal calls."""
        calls = [[[call.name, dict(call.arguments)] for call in turn] for turn in self.calls]
        return {"agent": "following", "calls": content_hash(calls)}

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Make each turn's calls, one a step, to the end of the episode."""
        messages: list[str] = []
        steps: list[Step] = []
        here: Turn | End = await session.begin()
        while isinstance(here, Turn):
            messages.append(here.message)
            turn = here.index
            for call in self.calls[turn] if turn < len(self.calls) else ():
                answer = await session.call((call,))
                steps.append(Step(turn=turn, text="", calls=(call,), observations=answer.observations))
                if answer.end is not None:
                    return Trajectory(messages=tuple(messages), steps=tuple(steps), end=answer.end, seed=seed)
            if not task.turns:
                here = End(by="agent", why="stopped")
                break
            here = await session.say("")
        return Trajectory(messages=tuple(messages), steps=tuple(steps), end=here, seed=seed)


async def follow(scheduler: Scheduler, environment: Environment, task: Task) -> Rollout | None:
    """Play a task's reference in a fresh episode, judged and stored as any rollout; None without one.

    No stage's progress and no observer counts it: the agent is not the run's.

    Raises:
        InfrastructureError: As for any rollout.
    """
    calls = environment.reference(task) if isinstance(environment, Referenced) else None
    if calls is None:
        return None
    unseen = evolve(scheduler.around(Following(calls=calls)), on_finished=lambda rollout, cached: None)
    [rollout] = await unseen.run([Unit(task=task, skill=NO_SKILL, seed=_SEED)])
    return rollout
