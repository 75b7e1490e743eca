"""The chat-completions wire format that nearly every model server speaks, to and from records.

Shared by the model plugins, because a plugin may import only ``wer``. What comes back
was written by a model and is hostile: whatever cannot be decoded is kept as text.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from wer.errors import ModelUnavailable
from wer.records import Json, JsonObject, Message, Reply, ToolCall, ToolSpec, Usage

_LONGEST = 1 << 20
_DEEPEST = 100
"""Characters and levels of the JSON that is taken from a model: more would break the store or a sandbox."""


def to_wire(message: Message) -> dict[str, Json]:
    """Write one message as the format has it."""
    wire: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": dumps(call.arguments)},
            }
            for call in message.calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.call_id
    return wire


def tools_to_wire(tools: Sequence[ToolSpec]) -> list[dict[str, Json]]:
    """Write tools as the format has them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def schema_to_wire(schema: JsonObject) -> dict[str, Json]:
    """Ask for a reply that is JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}


def reply_from_wire(answer: Json, *, usd: float | None) -> Reply:
    """Read a whole (not streamed) answer.

    Args:
        usd: What the call cost, or None when nobody knows.

    Raises:
        ModelUnavailable: It is not a chat completion, has no choice in it, or holds nothing at all:
            no word, no call, and by its own count no token.
    """
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise ModelUnavailable(
            f"the model's server sent something that is not a chat completion: {reprlib.repr(answer)[:200]}",
            kind="no chat completion",
        )
    calls, malformed = calls_of(message)
    reply = Reply(
        text=text_of(message),
        calls=calls,
        malformed=malformed,
        finish=clean(str(choice.get("finish_reason") or "stop")),
        usage=_usage(answer.get("usage"), usd),
    )
    if not (reply.text or calls or malformed or reply.usage.completion_tokens):
        raise ModelUnavailable(
            "the model's server sent an empty reply: no text, no call, not one token. Ask it with curl: a "
            "model that can't load or a filter in front of it answers so.",
            kind="empty reply",
        )
    return reply


def text_of(message: Mapping[str, Json]) -> str:
    """What a message of any role says; empty where it says nothing."""
    return _text(message.get("content")) or _text(message.get("refusal"))


def calls_of(message: Mapping[str, Json]) -> tuple[tuple[ToolCall, ...], tuple[str, ...]]:
    """The calls of an assistant's message: those whose arguments are a JSON object, and the raw text of the rest."""
    calls: list[ToolCall] = []
    malformed: list[str] = []
    room = _LONGEST
    wire = message.get("tool_calls")
    for item in wire if isinstance(wire, list) else []:
        function = item.get("function") if isinstance(item, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str):
            malformed.append(_shown(item))
            continue
        raw = function.get("arguments")
        raw = raw if isinstance(raw, str) else _shown(raw if raw is not None else {})
        room -= len(raw)
        try:
            arguments = loads(clean(raw) or "{}") if room >= 0 else None
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            calls.append(ToolCall(name=clean(name), arguments=arguments, id=clean(str(item.get("id") or ""))))
        else:
            malformed.append(clean(f"{name} {raw}"))
    return tuple(calls), tuple(malformed)


def loads(text: str) -> Json:
    """Parse JSON that a model wrote, strictly.

    Raises:
        ValueError: It is not JSON; NaN, infinities, a megabyte, and nesting that the store or a
            sandbox could not carry count as that too.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        raise ValueError("nested too deeply")
    try:
        value = json.loads(text)
        plain = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value if clean(plain) == plain else json.loads(clean(plain))


def _depth(text: str) -> int:
    """How deep the brackets outside of strings are nested, at the deepest."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[{}\]]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def dumps(value: Json) -> str:
    """Write JSON as prompts and requests carry it: one line, in its own script."""
    return json.dumps(value, ensure_ascii=False, default=dict)


def cleaned(reply: Reply) -> Reply:
    """The same, without lone surrogates: a model of a plugin may have read the format by itself."""
    words = [reply.text, reply.finish, *reply.malformed]
    words += [part for call in reply.calls for part in (call.name, call.id, dumps(call.arguments))]
    if (whole := "\0".join(words)) == clean(whole):
        return reply
    return evolve(
        reply,
        text=clean(reply.text),
        calls=tuple(
            ToolCall(
                name=clean(call.name), arguments=json.loads(clean(dumps(call.arguments))), id=clean(call.id)
            )
            for call in reply.calls
        ),
        malformed=tuple(map(clean, reply.malformed)),
        finish=clean(reply.finish),
    )


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can smuggle in and UTF-8 cannot store."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return clean(content)
    parts = content if isinstance(content, list) else []
    return clean(
        "".join(
            part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        )
    )


def _shown(value: Json) -> str:
    """Any JSON as text; what is nested too deeply to be written, in short."""
    try:
        return clean(dumps(value))
    except RecursionError:
        return clean(reprlib.repr(value))


def _usage(wire: Any, usd: float | None) -> Usage:
    usage = wire if isinstance(wire, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    return Usage(
        calls=1,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens") if isinstance(details, Mapping) else 0),
        usd=usd,
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
