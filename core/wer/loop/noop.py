"""The agent that does nothing: the baseline that tells what a benchmark gives away."""

from __future__ import annotations

from wer.contracts import Session
from wer.records import End, JsonObject, Skill, Step, Task, Trajectory, Turn


class NoOp:
    """An executor that leaves before its first move; where the turns are scripted, after the last.

    Turns that a task lists come whatever the agent says, so it lets them pass in silence. A
    simulated user would take silence for a fault: there it ends the episode itself.
    """

    @property
    def identity(self) -> JsonObject:
        """Without a model: one agent in all runs, whatever they configure."""
        return {"agent": "noop"}

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Call nothing and say nothing, to the end of the episode."""
        messages: list[str] = []
        steps: list[Step] = []
        here: Turn | End = await session.begin()
        while isinstance(here, Turn):
            messages.append(here.message)
            if not task.turns:
                here = End(by="agent", why="stopped")
                break
            steps.append(Step(turn=here.index, text=""))
            here = await session.say("")
        return Trajectory(messages=tuple(messages), steps=tuple(steps), end=here, seed=seed)
