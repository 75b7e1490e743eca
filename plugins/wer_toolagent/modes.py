"""Three ways to let a model act, behind one protocol: what it is told, and how its reply is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import frozen

from wer.chat import dumps, loads, to_wire
from wer.errors import ConfigError
from wer.records import Json, JsonObject, Message, Observation, Reply, Skill, ToolCall, ToolSpec, content_hash
from wer.tooldocs import document
from wer_toolagent.prompts import system_prompt
from wer_toolagent.schemas import any_of, call_schema, tool_schemas

DONE = "done"
MOST_CALLS = 12
"""In one plan. Without a limit a small model now and then lists every tool that there is."""


@frozen(kw_only=True)
class Move:
    """What a reply means.

    Attributes:
        text: For `wer.records.Step.text`.
        ends: Whether the turn is over once the calls are made.
        say: What the user is told at the end of the turn.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    ends: bool = False
    say: str = ""


class Mode(Protocol):
    """A way to act. Without state: the whole conversation is in the messages."""

    @property
    def native(self) -> bool:
        """Whether the tools are passed to the model's own interface."""
        ...

    @property
    def instructions(self) -> str:
        """The first part of the system prompt; may be empty."""
        ...

    def documentation(self, tools: Sequence[ToolSpec]) -> str:
        """The tools in words for the system prompt; empty when the model's interface has them."""
        ...

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        """What replies are constrained to."""
        ...

    def read(self, reply: Reply) -> Move:
        """What the reply makes the agent do. Never raises: text that is no call ends the turn."""
        ...

    def remember(self, reply: Reply) -> Message:
        """The reply, as the model sees it later."""
        ...

    def results(self, calls: Sequence[ToolCall], observations: Sequence[Observation]) -> Sequence[Message]:
        """What the calls gave, as messages within the turn."""
        ...

    def ask(self, message: str, results: Sequence[Observation]) -> Message:
        """The user's message, after results that the model has not seen yet."""
        ...


@frozen(kw_only=True)
class Native:
    """The model's own tool calls. No words of ours: context and skill are the whole system prompt."""

    native: bool = True
    instructions: str = ""

    def documentation(self, tools: Sequence[ToolSpec]) -> str:
        """None: the tools go through the model's own interface."""
        return ""

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        """None: the server reads calls out of the reply."""
        return None

    def read(self, reply: Reply) -> Move:
        """Take the calls; if one of them can't be decoded, none is made and the turn ends, as BFCL rules."""
        if reply.malformed:
            calls = [f"{call.name} {dumps(call.arguments)}" for call in reply.calls]
            text = "\n".join(filter(None, [reply.text, *calls, *reply.malformed]))
            return Move(text=text, ends=True, say=reply.text)
        return Move(text=reply.text, calls=reply.calls, ends=not reply.calls, say=reply.text)

    def remember(self, reply: Reply) -> Message:
        """The reply with its calls, or as plain text when a call could not be decoded."""
        text = self.read(reply).text if reply.malformed else reply.text
        calls = () if reply.malformed else reply.calls
        return Message(role="assistant", content=text, calls=calls)

    def results(self, calls: Sequence[ToolCall], observations: Sequence[Observation]) -> Sequence[Message]:
        """One tool message a call, in order, with the id that the server gave the call."""
        return [
            Message(role="tool", content=observation.text, call_id=call.id)
            for call, observation in zip(calls, observations, strict=True)
        ]

    def ask(self, message: str, results: Sequence[Observation]) -> Message:
        """The message alone: results are in the history already."""
        return Message(role="user", content=message)


@frozen(kw_only=True)
class _Written:
    """What both constrained modes share: tools are documented in the prompt, calls are JSON in the text."""

    instructions: str
    native: bool = False

    def documentation(self, tools: Sequence[ToolSpec]) -> str:
        return document(tools)

    def remember(self, reply: Reply) -> Message:
        return Message(role="assistant", content=reply.text)

    def results(self, calls: Sequence[ToolCall], observations: Sequence[Observation]) -> Sequence[Message]:
        return [Message(role="user", content=_told(observations))]

    def ask(self, message: str, results: Sequence[Observation]) -> Message:
        before = f"{_told(results)}\n\n" if results else ""
        return Message(role="user", content=before + message)


@frozen(kw_only=True)
class Step(_Written):
    """One call a reply, or ``done`` with a message to the user."""

    instructions: str = (
        "You complete the user's requests with the tools below. Reply with one tool call at a time, as JSON: "
        '{"name": "TOOL", "arguments": {...}}. You are then told its result. When the request is completed, '
        'reply {"name": "done", "arguments": {"message": "..."}}.'
    )

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        """One call of any tool, or ``done``.

        Raises:
            ConfigError: A tool of the environment is named ``done`` itself.
        """
        if any(tool.name == DONE for tool in tools):
            raise ConfigError(
                f"a tool of this environment is named {DONE!r}, which mode 'step' needs for itself. Use mode "
                "'native' or 'plan' in [executor_options]."
            )
        message = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
        return any_of([*tool_schemas(tools), call_schema(DONE, message)])

    def read(self, reply: Reply) -> Move:
        """One call, which goes on; ``done`` and text that is no call end the turn."""
        call = _call(_parsed(reply.text))
        if call is None:
            return Move(text=reply.text, ends=True, say=reply.text)
        if call.name == DONE:
            message = str(call.arguments.get("message", ""))
            return Move(text=reply.text, ends=True, say=message)
        return Move(text="", calls=(call,))


@frozen(kw_only=True)
class Plan(_Written):
    """All calls of a turn in one array, after which the turn ends without a word."""

    instructions: str = (
        "You complete the user's requests by calling tools. Reply with a JSON array of the tool calls that "
        "the request needs, in order, and nothing else. For example, with the tools go(room) and "
        'switch(device, on), the request "Turn off the lamp in the hall" is answered by '
        '[{"name": "go", "arguments": {"room": "hall"}}, '
        '{"name": "switch", "arguments": {"device": "lamp", "on": false}}]'
    )

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        """An array of 1 to `MOST_CALLS` calls, or of none when the task has no tools."""
        if not tools:
            return {"type": "array", "maxItems": 0}
        return {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_CALLS,
            "items": any_of(tool_schemas(tools)),
        }

    def read(self, reply: Reply) -> Move:
        """All calls of the turn, or none when one of them is broken: half a plan is not what was meant."""
        items = _parsed(reply.text)
        calls = [_call(item) for item in items] if isinstance(items, list) else []
        whole = tuple(call for call in calls if call is not None)
        if not whole or len(whole) < len(calls):
            return Move(text=reply.text, ends=True)
        return Move(text="", calls=whole, ends=True)


MODES: Mapping[str, Mode] = {"native": Native(), "step": Step(), "plan": Plan()}


def prompt_version(mode: Mode) -> str:
    """Name all words and constraints around tasks and skills by their content.

    It changes when they do, so that old rollouts are not taken for new.
    """
    call, observation = ToolCall(name="t", arguments={"a": 1}), Observation(text="r")
    skill = Skill(name="s", description="d", body="1. b")
    messages = (
        mode.ask("m", (observation,)),
        mode.remember(Reply(text="a", calls=(call,))),
        *mode.results((call,), (observation,)),
    )
    return content_hash(
        [
            system_prompt(mode.instructions, mode.documentation([_SAMPLE]), "c", skill),
            [to_wire(message) for message in messages],
            mode.schema([_SAMPLE]),
            mode.schema([]),
        ]
    )


_RESULTS = "Results:"
_SAMPLE = ToolSpec(
    name="t",
    description="d",
    parameters={
        "properties": {"a": {"type": "string", "description": "e", "default": 1, "enum": []}},
    },
)


def _told(observations: Sequence[Observation]) -> str:
    return "\n".join([_RESULTS, *(observation.text for observation in observations)])


def _parsed(text: str) -> Json:
    """The reply as JSON, or None when it is not."""
    try:
        return loads(text)
    except ValueError:
        return None


def _call(item: Json) -> ToolCall | None:
    """Read a call, or None when it has not exactly a name and an object of arguments."""
    if not isinstance(item, Mapping) or set(item) != {"name", "arguments"}:
        return None
    name, arguments = item["name"], item["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return None
    return ToolCall(name=name, arguments=arguments)
