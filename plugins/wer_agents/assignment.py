"""A task as an agent with tools of its own gets it: all that an agent may see."""

from __future__ import annotations

import copy

from attrs import asdict, frozen

from wer.records import JsonObject, Task


@frozen(kw_only=True)
class Assignment:
    """One task.

    Attributes:
        id: As in the file of tasks.
        turns: What the user says; ``query`` is the first of it.
        state: What the file says of the world that the agent has to put in place; may be empty.
        context: A policy that the agent has to follow; may be empty.
    """

    id: str
    domain: str
    turns: tuple[str, ...]
    state: JsonObject
    context: str

    @property
    def query(self) -> str:
        """The user's first message."""
        return self.turns[0] if self.turns else ""

    def table(self) -> JsonObject:
        """All of it as JSON."""
        return {**asdict(self), "turns": list(self.turns), "query": self.query}


def assignment(task: Task) -> Assignment:
    """A copy of what an agent may see of a task, for it to do with as it likes."""
    return Assignment(
        id=task.id.partition("/")[2] or task.id,
        domain=task.domain,
        turns=task.turns,
        state=copy.deepcopy(dict(task.setup.get("state") or {})),
        context=task.context,
    )
