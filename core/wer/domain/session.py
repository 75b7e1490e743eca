"""An episode whose user says one message a turn, whatever the agent answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wer.arguments import objection
from wer.contracts import Episode
from wer.errors import DomainError
from wer.records import Answer, End, Evidence, Json, Observation, Task, ToolCall, Turn, TurnEvidence


class World(Protocol):
    """What a scripted episode acts on."""

    async def reset(self) -> None:
        """Put the task's world in place."""
        ...

    async def call(self, call: ToolCall) -> Observation:
        """Run one tool; whatever goes wrong in it is the answer."""
        ...

    async def export(self) -> Json:
        """The state now, as canonical JSON."""
        ...

    async def close(self) -> None:
        """Free the episode."""
        ...


class ScriptedSession:
    """A `wer.contracts.Session` over the turns that a task lists.

    Args:
        turns: What the user says.
        steps_per_turn: Steps with calls in one turn; after the last of them the episode is over.
    """

    def __init__(self, turns: Sequence[str], world: World, *, steps_per_turn: int) -> None:
        self._script = turns
        self._world = world
        self._steps_per_turn = steps_per_turn
        self._turns: list[TurnEvidence] = []
        self._results: list[str] = []
        self._steps = 0
        self._turn_open = False
        self._end: End | None = None

    async def begin(self) -> Turn:
        """Put the world in place, and give the first user message."""
        await self._world.reset()
        return self._next_turn()

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one step. After the last step that a turn allows, the episode is over at once."""
        self._require_open()
        if not calls:
            raise ValueError("a step without calls ends the turn: say something instead")
        observations = tuple([await self._world.call(call) for call in calls])
        self._results += [observation.text for observation in observations]
        self._steps += 1
        if self._steps == self._steps_per_turn:
            await self._close_turn("")
            self._end = End(by="environment", why="step_limit")
        return Answer(observations=observations, end=self._end)

    async def say(self, text: str) -> Turn | End:
        """End the turn. The scripted user doesn't read the text."""
        self._require_open()
        await self._close_turn(text)
        if len(self._turns) < len(self._script):
            return self._next_turn()
        self._end = End(by="user")
        return self._end

    async def evidence(self) -> Evidence:
        """Export all turns that were begun; an agent that stopped on its own is shown as it stopped."""
        if self._turn_open:
            await self._close_turn("")
        return Evidence(turns=tuple(self._turns), end=self._end or End(by="agent", why="stopped"))

    async def close(self) -> None:
        """Kill the child with its world; what `evidence` exported is all that stays."""
        await self._world.close()

    def _next_turn(self) -> Turn:
        self._turn_open = True
        index = len(self._turns)
        return Turn(message=self._script[index], index=index)

    async def _close_turn(self, said: str) -> None:
        state = await self._world.export()
        results = tuple(self._results)
        self._turns.append(TurnEvidence(state=state, results=results, calls=len(results), said=said))
        self._results, self._steps, self._turn_open = [], 0, False

    def _require_open(self) -> None:
        if not self._turn_open:
            raise ValueError("no turn is open: the episode hasn't begun, or it is over")


class StateWorld:
    """An instance of a user's class in an episode, as `wer_sandbox.state` serves it."""

    def __init__(self, task: Task, episode: Episode) -> None:
        self._task = task
        self._episode = episode

    async def reset(self) -> None:
        """Make the instance.

        Raises:
            DomainError: The class can't be made of the task's state.
        """
        answer = await self._episode.request("reset", {"state": self._task.setup["state"]})
        if answer["problem"]:
            raise DomainError(
                f"{self._task.id}: {answer['problem']}. The task's state must be the keyword arguments of the class."
            )

    async def call(self, call: ToolCall) -> Observation:
        """Run one tool."""
        refused = objection(call)
        if refused is not None:
            return Observation(text=f"Error: {refused}", ok=False)
        answer = await self._episode.request("call", {"name": call.name, "arguments": call.arguments})
        return Observation(text=answer["text"], ok=answer["ok"])

    async def export(self) -> Json:
        """Give the state.

        Raises:
            DomainError: It can't be written as JSON.
        """
        answer = await self._episode.request("export", {})
        if "problem" in answer:
            raise DomainError(
                f"{self._task.id}: the state can't be exported: {answer['problem']}. Begin the attribute's name with "
                "an underscore, or give the class a method export() that returns JSON."
            )
        return answer["state"]

    async def close(self) -> None:
        """Kill the episode."""
        await self._episode.close()
