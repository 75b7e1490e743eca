"""The agent that does nothing: the baseline that tells what a benchmark gives away."""

from __future__ import annotations

from wer.contracts import Session
from wer.records import End, JsonObject, Skill, Step, Task, Trajectory, Turn


class NoOp:
    """An executor that answers every turn with an empty message."""

    @property
    def identity(self) -> JsonObject:
        return {"agent": "noop"}

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Say nothing until the environment ends the episode."""
        messages: list[str] = []
        steps: list[Step] = []
        here: Turn | End = await session.begin()
        while isinstance(here, Turn):
            messages.append(here.message)
            steps.append(Step(turn=here.index, text=""))
            here = await session.say("")
        return Trajectory(messages=tuple(messages), steps=tuple(steps), end=here, seed=seed)
