"""One episode of BFCL, by the official runner's rules for turns and steps."""

from __future__ import annotations

from wer.arguments import objection
from wer.contracts import Episode
from wer.domain.session import ScriptedSession
from wer.records import Json, Observation, Task, ToolCall

STEPS_PER_TURN = 21
"""Steps with calls in one turn. The official limit is 20, tested after the step as ``count > 20``."""


class BfclSession(ScriptedSession):
    """A user who says one message a turn, whatever the agent answers."""

    def __init__(self, task: Task, episode: Episode) -> None:
        super().__init__(task.turns, _World(task, episode), steps_per_turn=STEPS_PER_TURN)


class _World:
    """The tool objects of one task, in the sandbox."""

    def __init__(self, task: Task, episode: Episode) -> None:
        self._task = task
        self._episode = episode

    async def reset(self) -> None:
        """Load the task's initial scenario into fresh tool objects."""
        await self._episode.request("reset", self._task.setup)

    async def call(self, call: ToolCall) -> Observation:
        """Run one tool."""
        refused = objection(call)
        if refused is not None:
            return Observation(text=f"Error during execution: {refused}", ok=False)
        answer = await self._episode.request("call", {"name": call.name, "arguments": call.arguments})
        return Observation(text=answer["text"], ok=answer["ok"])

    async def export(self) -> Json:
        """Give the public attributes of every tool object."""
        return await self._episode.request("export", {})

    async def close(self) -> None:
        """Kill the child."""
        await self._episode.close()
