"""Checks what an agent of the user's own says it did, left behind, and used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from wer.errors import AgentError
from wer.records import UNTOLD, Json, Outcome, Task, Usage
from wer_agents.messages import as_chat, read_steps

MOST_TOLD = 16 << 20
"""Characters of one outcome: every rollout is stored, and read again for reports."""

_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")


def read_usage(usage: Json) -> Usage:
    """Read what an agent says that its model calls cost.

    Args:
        usage: A `Usage`, a table or an object with some of its attributes (as model servers answer), or None.

    Raises:
        AgentError: It is something else.
    """
    if usage is None or (isinstance(usage, Usage) and usage.untold):
        return UNTOLD
    told: Mapping[str, Any] = (
        usage
        if isinstance(usage, Mapping)
        else {name: getattr(usage, name, None) for name in (*_COUNTS, "usd")}
    )
    known: dict[str, int] = {key: told[key] for key in _COUNTS if isinstance(told.get(key), int)}
    usd = told.get("usd")
    fine = known.keys() >= {"prompt_tokens", "completion_tokens"} and min(known.values()) >= 0
    if not fine or not (usd is None or (isinstance(usd, (int, float)) and 0 <= usd < float("inf"))):
        raise AgentError(
            f"the usage of your agent's outcome is {usage!r:.120}; expected prompt_tokens and completion_tokens "
            "(calls, cached_tokens and usd where known), such as wer.Usage(prompt_tokens=900, completion_tokens=80), "
            "or None where it is unknown."
        )
    return evolve(Usage(calls=1, usd=None if usd is None else float(usd)), **known)


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
