"""The reference of a task as calls of the agent, where the agent alone can do what it does."""

from __future__ import annotations

from collections.abc import Sequence

from wer.records import JsonObject, ToolCall


def reference(secret: JsonObject) -> Sequence[Sequence[ToolCall]] | None:
    """Give the reference's actions, all in the first turn.

    None where the user has to act too, as in telecom, or where the verdict also asks for what the
    agent tells: no calls alone solve such a task.

    Args:
        secret: The package's own record of the task.
    """
    criteria = secret["evaluation_criteria"]
    actions = criteria.get("actions") or []
    if any(action.get("requestor", "assistant") != "assistant" for action in actions):
        return None
    basis = criteria.get("reward_basis") or ["DB", "COMMUNICATE"]
    if "COMMUNICATE" in basis and criteria.get("communicate_info"):
        return None
    return (tuple(ToolCall(name=action["name"], arguments=action["arguments"]) for action in actions),)
