"""The simulated user: a model with the package's prompt, asked on the host, one message at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from wer.contracts import Model
from wer.errors import PromptTooLong
from wer.records import Message, Observation, Reply, Sampling, ToolCall, ToolSpec, derive_seed

TRIES = 4
"""How often an empty message, or a call that can't be read, is asked for: as often as upstream does."""

Fault: TypeAlias = Literal["empty_message", "malformed_call", "out_of_context"]


@frozen(kw_only=True)
class Said:
    """One message of the user.

    Attributes:
        calls: Calls of the user's own tools; their results come before its next message.
        fault: Why there is no message, after all tries.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    fault: Fault | None = None

    def stop(self, words: Mapping[str, str]) -> str | None:
        """What the message ends the episode with, if it does: a stop word anywhere in it is enough."""
        if self.calls:
            return None
        return next((why for why, word in words.items() if word in self.text), None)


@define(kw_only=True)
class SimulatedUser:
    """One episode's user. It sees its own tools' results, and of the agent only what it says.

    Attributes:
        prompt: The package's, with the task's scenario.
        seed: Each question has a seed of its own, made from it.
    """

    model: Model
    prompt: str
    tools: Sequence[ToolSpec]
    seed: int
    temperature: float
    max_tokens: int
    _history: list[Message] = field(factory=list, init=False)
    _asked: int = field(default=0, init=False)

    def hear(self, text: str) -> None:
        """Take what the agent says; the roles are turned around: to the model, the agent is its user."""
        self._history.append(Message(role="user", content=text))

    def see(self, calls: Sequence[ToolCall], observations: Sequence[Observation]) -> None:
        """Take what the calls of its last message gave."""
        for call, observation in zip(calls, observations, strict=True):
            self._history.append(Message(role="tool", content=observation.text, call_id=call.id))

    async def speak(self) -> Said:
        """Have the next message. A user that fails is data; only the model's own failure raises.

        Raises:
            InfrastructureError: The model could not be asked.
        """
        fault: Fault = "empty_message"
        for _ in range(TRIES):
            try:
                reply = await self._ask()
            except PromptTooLong:
                return Said(fault="out_of_context")
            if reply.malformed:
                fault = "malformed_call"
            elif reply.calls or reply.text.strip():
                self._history.append(Message(role="assistant", content=reply.text, calls=reply.calls))
                return Said(text=reply.text, calls=reply.calls)
            else:
                fault = "empty_message"
        return Said(fault=fault)

    async def _ask(self) -> Reply:
        sampling = Sampling(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=derive_seed("tau2 user", self.seed, self._asked),
        )
        self._asked += 1
        system = Message(role="system", content=self.prompt)
        return await self.model.complete((system, *self._history), self.tools, sampling)
