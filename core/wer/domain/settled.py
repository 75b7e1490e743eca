"""An episode without tools: its evidence is what an agent with tools of its own says it left behind."""

from __future__ import annotations

from collections.abc import Sequence

from wer import chat
from wer.domain.session import ScriptedSession
from wer.records import End, Evidence, Json, JsonObject, Observation, Outcome, Task, ToolCall, TurnEvidence


class SettledSession(ScriptedSession):
    """A `wer.contracts.Settling` session.

    An agent that only speaks, such as a model without tools, leaves the state as the task has it.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task.turns, _NoTools(task.setup["state"]), steps_per_turn=len(task.turns) + 1)
        self._settled: Evidence | None = None

    async def settle(self, outcome: Outcome) -> End:
        """Take the outcome of the whole task as evidence."""
        end = End(by="agent")
        self._settled = Evidence(
            turns=(TurnEvidence(state=outcome.state, said=_last_words(outcome.messages)),), end=end
        )
        return end

    async def evidence(self) -> Evidence:
        """What was settled; or what the agent said, turn by turn."""
        return self._settled or await super().evidence()


class _NoTools:
    """A `wer.domain.session.World` in which nothing can be done."""

    def __init__(self, state: Json) -> None:
        self._state = state

    async def reset(self) -> None:
        """It is in place."""

    async def call(self, call: ToolCall) -> Observation:
        """Refuse."""
        return Observation(text=f"Error: there is no tool {call.name!r} here", ok=False)

    async def export(self) -> Json:
        """As the task has it."""
        return self._state

    async def close(self) -> None:
        """Nothing is held."""


def _last_words(messages: str | Sequence[JsonObject]) -> str:
    """What the agent told the user last."""
    if isinstance(messages, str):
        return messages
    said = [chat.text_of(message) for message in messages if message.get("role") == "assistant"]
    return next(filter(None, reversed(said)), "")
