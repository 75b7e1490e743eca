"""Three ways to let a model act, behind one protocol: what it is told, and how its reply is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import frozen

from wer.chat import dumps, loads
from wer.errors import ConfigError
from wer.records import Json, JsonObject, Message, Observation, Reply, ToolCall, ToolSpec, content_hash
from wer.tooldocs import document
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

    @property
    def version(self) -> str:
        """Changes when the words around tasks and skills do, so that old rollouts are not taken for new."""
        ...

    def documentation(self, tools: Sequence[ToolSpec]) -> str: ...

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        """What replies are constrained to."""
        ...

    def read(self, reply: Reply) -> Move: ...

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
    version: str = "native-1"

    def documentation(self, tools: Sequence[ToolSpec]) -> str:
        return ""

    def schema(self, tools: Sequence[ToolSpec]) -> JsonObject | None:
        return None

    def read(self, reply: Reply) -> Move:
        """Take the calls; if one of them can't be decoded, none is made and the turn ends, as BFCL rules."""
        if reply.malformed:
            calls = [f"{call.name} {dumps(call.arguments)}" for call in reply.calls]
            text = "\n".join(filter(None, [reply.text, *calls, *reply.malformed]))
            return Move(text=text, ends=True, say=reply.text)
        return Move(text=reply.text, calls=reply.calls, ends=not reply.calls, say=reply.text)

    def remember(self, reply: Reply) -> Message:
        text = self.read(reply).text if reply.malformed else reply.text
        calls = () if reply.malformed else reply.calls
        return Message(role="assistant", content=text, calls=calls)

    def results(self, calls: Sequence[ToolCall], observations: Sequence[Observation]) -> Sequence[Message]:
        return [
            Message(role="tool", content=observation.text, call_id=call.id)
            for call, observation in zip(calls, observations, strict=True)
        ]

    def ask(self, message: str, results: Sequence[Observation]) -> Message:
        return Message(role="user", content=message)


@frozen(kw_only=True)
class _Written:
    """What both constrained modes share: tools are documented in the prompt, calls are JSON in the text."""

    instructions: str
    native: bool = False

    @property
    def version(self) -> str:
        return content_hash([self.instructions, _RESULTS, MOST_CALLS, document([_SAMPLE])])

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
        if any(tool.name == DONE for tool in tools):
            raise ConfigError(
                f"a tool of this environment is named {DONE!r}, which mode 'step' needs for itself. Use mode "
                "'native' or 'plan' in [executor_options]."
            )
        message = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
        return any_of([*tool_schemas(tools), call_schema(DONE, message)])

    def read(self, reply: Reply) -> Move:
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
        if not tools:
            return {"type": "array", "maxItems": 0}
        return {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_CALLS,
            "items": any_of(tool_schemas(tools)),
        }

    def read(self, reply: Reply) -> Move:
        items = _parsed(reply.text)
        calls = [_call(item) for item in items] if isinstance(items, list) else []
        whole = tuple(call for call in calls if call is not None)
        if not whole or len(whole) < len(calls):
            return Move(text=reply.text, ends=True)
        return Move(text="", calls=whole, ends=True)


MODES: Mapping[str, Mode] = {"native": Native(), "step": Step(), "plan": Plan()}

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
