"""An outcome as JSON, from a program's file or an endpoint's answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wer.chat import loads
from wer.errors import AgentError
from wer.records import Json, Outcome
from wer.tables import nearest
from wer_agents.outcomes import MOST_TOLD, read_usage

_KEYS = ("messages", "state", "usage", "skill_loaded", "task")


def read_outcome(told: Json, *, agent: str, answer: str | None = None) -> Outcome:
    """Read what an agent tells of its outcome: a text, its last answer, or a table of an `Outcome`'s attributes.

    Args:
        agent: What messages call it.
        answer: Stands for ``messages`` where the table has none.

    Raises:
        AgentError: It is something else.
    """
    if isinstance(told, str):
        return Outcome(told)
    if not isinstance(told, Mapping):
        raise AgentError(
            f"{agent} told {told!r:.80} as its outcome; expected a JSON object with messages and state, or a string, "
            "its last answer."
        )
    for key in told:
        if key not in _KEYS:
            raise AgentError(
                f"the outcome of {agent} has {key!r}{nearest(key, _KEYS) or '.'} Its keys are {', '.join(_KEYS)}."
            )
    messages = told.get("messages", answer)
    if not isinstance(messages, (str, list)):
        raise AgentError(
            f"messages of {agent}'s outcome is {messages!r:.80}; expected the conversation as a list, or the last "
            "answer as a string."
        )
    usage = told.get("usage")
    return Outcome(
        messages,
        told.get("state"),
        usage=None if usage is None else read_usage(usage),
        skill_loaded=told.get("skill_loaded"),
        task=str(told.get("task") or ""),
    )


def outcome_in(file: Path, *, agent: str, answer: str) -> Outcome:
    """Read the file that a program may have written; without it, the answer is all that it tells.

    Raises:
        AgentError: It is no outcome.
    """
    if not file.exists():
        return Outcome(answer)
    try:
        if not file.is_file():
            raise OSError("it is no file")
        with file.open("rb") as opened:
            content = opened.read(MOST_TOLD + 1)
    except OSError as error:
        raise AgentError(f"the outcome of {agent} can't be read: {error}. Write an ordinary file.") from error
    if len(content) > MOST_TOLD:
        raise AgentError(
            f"the outcome of {agent} is larger than {MOST_TOLD >> 20} MiB. Leave out what no check needs."
        )
    try:
        told: Json = loads(content.decode("utf-8"))
    except ValueError as error:
        raise AgentError(
            f"the outcome of {agent} is no JSON in UTF-8: {error}. Use a JSON library."
        ) from error
    return read_outcome(told, agent=agent, answer=answer)
