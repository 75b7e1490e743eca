"""One episode of BFCL, by the official runner's rules for turns and steps."""

from __future__ import annotations

from collections.abc import Sequence

from wer.arguments import objection
from wer.contracts import Episode
from wer.records import Answer, End, Evidence, Observation, Task, ToolCall, Turn, TurnEvidence

STEPS_PER_TURN = 21
"""Steps with calls in one turn. The official limit is 20, tested after the step as ``count > 20``."""


class BfclSession:
    """A user who says one message a turn, whatever the agent answers."""

    def __init__(self, task: Task, episode: Episode) -> None:
        self._task = task
        self._episode = episode
        self._turns: list[TurnEvidence] = []
        self._results: list[str] = []
        self._steps = 0
        self._turn_open = False
        self._end: End | None = None

    async def begin(self) -> Turn:
        """Load the task's initial scenario into fresh tool objects, and give the first user message."""
        await self._episode.request("reset", self._task.setup)
        return self._next_turn()

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one step. After the last step that a turn allows, the episode is over at once."""
        self._require_open()
        if not calls:
            raise ValueError("a step without calls ends the turn: say something instead")
        observations = tuple([await self._observe(call) for call in calls])
        self._results += [observation.text for observation in observations]
        self._steps += 1
        if self._steps == STEPS_PER_TURN:
            await self._close_turn()
            self._end = End(by="environment", why="step_limit")
        return Answer(observations=observations, end=self._end)

    async def say(self, text: str) -> Turn | End:
        """End the turn. The scripted user doesn't read the text."""
        self._require_open()
        await self._close_turn()
        if len(self._turns) < len(self._task.turns):
            return self._next_turn()
        self._end = End(by="user")
        return self._end

    async def evidence(self) -> Evidence:
        """Export all turns that were begun; an agent that stopped on its own is shown as it stopped."""
        if self._turn_open:
            await self._close_turn()
        return Evidence(turns=tuple(self._turns), end=self._end or End(by="agent", why="stopped"))

    async def close(self) -> None:
        """Kill the child with its world; what `evidence` exported is all that stays."""
        await self._episode.close()

    def _next_turn(self) -> Turn:
        self._turn_open = True
        index = len(self._turns)
        return Turn(message=self._task.turns[index], index=index)

    async def _observe(self, call: ToolCall) -> Observation:
        refused = objection(call)
        if refused is not None:
            return Observation(text=f"Error during execution: {refused}", ok=False)
        answer = await self._episode.request("call", {"name": call.name, "arguments": call.arguments})
        return Observation(text=answer["text"], ok=answer["ok"])

    async def _close_turn(self) -> None:
        state = await self._episode.request("export", {})
        results = tuple(self._results)
        self._turns.append(TurnEvidence(state=state, results=results, calls=len(results)))
        self._results, self._steps, self._turn_open = [], 0, False

    def _require_open(self) -> None:
        if not self._turn_open:
            raise ValueError("no turn is open: the episode hasn't begun, or it is over")
