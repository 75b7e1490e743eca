"""Reads what an agent of the user's own says it did: its conversation, and what that cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from wer import chat
from wer.errors import AgentError
from wer.records import UNTOLD, Json, Observation, Outcome, Step, Task, Usage


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
            calls, _ = chat.calls_of(message)
            observations = [heard[call.id] for call in calls if call.id in heard]
            whole = len(observations) == len(calls)
            yield Step(
                turn=turn,
                text=chat.text_of(message),
                calls=calls,
                observations=tuple(observations) if whole else (),
            )
        elif role not in ("system", "developer", "user", "tool"):
            raise AgentError(
                f"message {place + 1} of your agent's outcome is {message!r:.80}; expected a table such as "
                "{'role': 'assistant', 'content': ...}, in the format of chat completions: system, user, assistant "
                "(with tool_calls) or tool. Or give its last answer alone, as a text."
            )


def read_usage(usage: Json) -> Usage:
    """Read what an agent says that its model calls cost.

    Args:
        usage: A `Usage`, a table or an object with some of its attributes (as model servers answer), or None.

    Raises:
        AgentError: It is something else.
    """
    if usage is None or isinstance(usage, Usage):
        return usage or UNTOLD
    table = usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", None)
    known = {key: table[key] for key in _COUNTS if isinstance(table.get(key), int)} if table else {}
    usd = table.get("usd") if table else None
    fine = known.keys() >= {"prompt_tokens", "completion_tokens"} and min(known.values()) >= 0
    if not fine or not (usd is None or (isinstance(usd, (int, float)) and 0 <= usd < float("inf"))):
        raise AgentError(
            f"the usage of your agent's outcome is {usage!r:.120}; expected prompt_tokens and completion_tokens "
            "(calls, cached_tokens and usd where known), such as wer.Usage(prompt_tokens=900, completion_tokens=80), "
            "or None where it is unknown."
        )
    return evolve(Usage(calls=1, usd=None if usd is None else float(usd)), **known)


MOST_TOLD = 16 << 20
"""Characters of one outcome: every rollout is stored, and read again for reports."""

_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")


def settled(outcome: Any, task: Task, agent: str) -> Outcome:
    """Check what an agent with tools of its own returned.

    Args:
        agent: What messages call it.

    Returns:
        The same, its state as plain JSON.

    Raises:
        AgentError: It is no `Outcome`, answers another task, or its state is no JSON.
    """
    if not isinstance(outcome, Outcome):
        raise AgentError(
            f"{agent} returned {outcome!r:.80} of type {type(outcome).__name__} on {task.id}; expected a "
            "wer.Outcome(messages, state): its last answer or its whole conversation, and what it left behind."
        )
    if outcome.task and outcome.task not in (task.id, task.id.partition("/")[2]):
        raise AgentError(
            f"{agent} was given the task {task.id!r} and answered {outcome.task!r}. Return the outcome of the task "
            "that it is called with; keep nothing of one call for the next."
        )
    if not (outcome.skill_loaded is None or isinstance(outcome.skill_loaded, bool)):
        raise AgentError(
            f"skill_loaded of {agent}'s outcome is {outcome.skill_loaded!r}; expected True, False, or None for unknown."
        )
    try:
        written = json.dumps(outcome.state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(
            f"the state that {agent} left behind on {task.id} is no JSON: {error}. Return tables, lists, texts and "
            "finite numbers."
        ) from error
    if len(written) + len(str(outcome.messages)) > MOST_TOLD:
        raise AgentError(
            f"the outcome of {agent} on {task.id} is larger than {MOST_TOLD >> 20} MiB. Leave out what no check needs."
        )
    return evolve(outcome, messages=as_chat(outcome.messages), state=json.loads(written))


def last_answer(outcome: Outcome, agent: str) -> str:
    """What an agent that calls WER's tools says to the user at the end of its turn.

    Args:
        agent: What messages call it.

    Raises:
        AgentError: It tells a state, which is not its own.
    """
    if outcome.state is not None:
        raise AgentError(
            f"{agent} told a state, and the state is that of the environment whose tools it calls. Leave it out."
        )
    steps = read_steps(outcome.messages, turns=())
    return steps[-1].text if steps else ""


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
