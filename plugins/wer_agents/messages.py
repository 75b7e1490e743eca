"""A conversation as an agent of the user's own tells it: in the format of chat completions, or the Responses API's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wer import chat
from wer.errors import AgentError
from wer.records import Json, Observation, Step


def as_chat(messages: Any) -> str | list[Json]:
    """Write a conversation in the format of chat completions.

    Items of the Responses API are translated, and objects of a client library become tables.

    Raises:
        AgentError: It is no list, and no text.
    """
    if isinstance(messages, str):
        return messages
    if not isinstance(messages, Sequence):
        raise AgentError(
            f"the messages of your agent's outcome are {messages!r:.80}; expected a list of them, or the last answer "
            "as a text."
        )
    tables = [each.model_dump() if hasattr(each, "model_dump") else each for each in messages]
    return [_translated(each) if isinstance(each, Mapping) else each for each in tables if not _thought(each)]


def _translated(item: Mapping[str, Json]) -> Mapping[str, Json]:
    """A call, or its answer, as the Responses API has them; any other item as it is."""
    if item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if item.get("type") == "function_call_output":
        output = item.get("output")
        text = output if isinstance(output, str) else chat.dumps(output)
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": text}
    return item


def _thought(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "reasoning"


def read_steps(messages: str | Sequence[Json], *, turns: Sequence[str]) -> tuple[Step, ...]:
    """Read the steps of a conversation that an agent tells in the format of chat completions.

    A user's message begins the next turn where it is that turn's text; system prompts, and whatever else the user
    is made to say, are part of the agent.

    Args:
        turns: What the task's user says.

    Raises:
        AgentError: It is in another format, with what is wrong where.
    """
    if isinstance(messages, str):
        return (Step(turn=max(0, len(turns) - 1), text=chat.clean(messages)),)
    return tuple(_steps(messages, turns))


def _steps(messages: Sequence[Json], turns: Sequence[str]) -> Iterator[Step]:
    turn = 0
    heard = {
        str(message.get("tool_call_id")): Observation(text=chat.text_of(message))
        for message in messages
        if isinstance(message, Mapping) and message.get("role") == "tool"
    }
    for place, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "user" and turn + 1 < len(turns) and chat.text_of(message) == turns[turn + 1]:
            turn += 1
        if role == "assistant":
            calls, malformed = chat.calls_of(message)
            observations = [heard[call.id] for call in calls if call.id in heard]
            whole = len(observations) == len(calls)
            yield Step(
                turn=turn,
                text="\n".join(filter(None, [chat.text_of(message), *malformed])),
                calls=calls,
                observations=tuple(observations) if whole else (),
            )
        elif role not in ("system", "developer", "user", "tool"):
            raise AgentError(
                f"message {place + 1} of your agent's outcome is {message!r:.80}; expected a table such as "
                "{'role': 'assistant', 'content': ...}, in the format of chat completions: system, user, assistant "
                "(with tool_calls) or tool. Or give its last answer alone, as a text."
            )
