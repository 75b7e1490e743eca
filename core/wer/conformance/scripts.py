"""A model and an episode that follow a script, and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from wer.records import (
    Answer,
    End,
    Evidence,
    JsonObject,
    Message,
    Observation,
    Reply,
    Sampling,
    Task,
    ToolCall,
    ToolSpec,
    Turn,
    TurnEvidence,
    Usage,
)

USAGE = Usage(calls=1, prompt_tokens=7, completion_tokens=3)
"""What each reply of a scripted model costs."""

TASK = Task(
    id="conformance/greet",
    env="conformance",
    domain="conformance",
    split="train",
    turns=("Greet Ada, please.", "Now greet Grace."),
    tools=(
        ToolSpec(
            name="greet",
            description="Greet somebody.",
            parameters={
                "type": "object",
                "properties": {"name": {"type": "string", "description": "Whom."}},
                "required": ["name"],
            },
        ),
    ),
    context="Be polite.",
)


@frozen(kw_only=True)
class Asked:
    """One call of a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    sampling: Sampling


@define
class ScriptedModel:
    """Answers by a function of what it is asked.

    Attributes:
        asked: Every call, in order.
    """

    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(factory=list)

    @property
    def identity(self) -> JsonObject:
        """The same for all scripts: a script is no other agent."""
        return {"provider": "scripted"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Note the call, let others have a turn, and answer."""
        asked = Asked(messages=tuple(messages), tools=tuple(tools), sampling=sampling)
        self.asked.append(asked)
        await asyncio.sleep(0)
        return self.answer(asked)

    async def close(self) -> None:
        """Nothing is held."""


class HangingModel(ScriptedModel):
    """Gives no answer."""

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Wait for ever."""
        await asyncio.Event().wait()
        raise AssertionError


def greeting(asked: Asked) -> Reply:
    """Call the tool after a user's message, and end the turn after a tool's answer."""
    if asked.tools and asked.messages[-1].role == "user":
        name = "Ada" if "Ada" in asked.messages[-1].content else "Grace"
        return Reply(
            text="",
            calls=(ToolCall(name="greet", arguments={"name": name}, id=f"call_{name}"),),
            finish="tool_calls",
            usage=USAGE,
        )
    return Reply(text="Done.", usage=USAGE)


@define
class ScriptedSession:
    """An episode of `TASK`: two turns, and a tool that greets.

    Attributes:
        calls: What the agent called, in order.
        said: What it said at the end of each turn.
    """

    calls: list[ToolCall] = field(factory=list)
    said: list[str] = field(factory=list)

    async def begin(self) -> Turn:
        """The first message."""
        return Turn(message=TASK.turns[0], index=0)

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Greet; anything else is refused."""
        self.calls += calls
        return Answer(observations=tuple(map(_observe, calls)))

    async def say(self, text: str) -> Turn | End:
        """The next message, or the end."""
        self.said.append(text)
        here = len(self.said)
        return Turn(message=TASK.turns[here], index=here) if here < len(TASK.turns) else End(by="user")

    async def evidence(self) -> Evidence:
        """How many calls there were."""
        return Evidence(turns=(TurnEvidence(state=len(self.calls)),), end=End(by="user"))

    async def close(self) -> None:
        """Nothing is held."""


def _observe(call: ToolCall) -> Observation:
    if call.name != "greet" or not isinstance(call.arguments.get("name"), str):
        return Observation(text=f"no such call: {call.name}", ok=False)
    return Observation(text=f"Hello, {call.arguments['name']}!")
