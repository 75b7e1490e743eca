"""A task and a skill as an agent of the user's own gets them: all that it may see."""

from __future__ import annotations

import copy

from attrs import asdict, frozen

from wer.errors import AgentError
from wer.records import JsonObject, Skill, Task
from wer.skills.cleaning import harmless


@frozen(kw_only=True)
class Assignment:
    """One task, for an agent with tools of its own.

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


def skill_text(skill: Skill) -> str:
    """The skill's body, for a prompt; no skill is the empty text."""
    return "" if skill.empty else harmless(skill.body)


def refuse_scripts(skill: Skill, agent: str) -> None:
    """Refuse a skill that an agent with tools of its own can't use whole.

    Args:
        agent: What messages call it.

    Raises:
        AgentError: The skill has scripts, which a model wrote.
    """
    if skill.scripts:
        raise AgentError(
            f"{agent} has tools of its own, and can't call those of a skill's scripts ({', '.join(skill.scripts)}), "
            "which run nowhere but in a sandbox of ours. Use a skill without scripts."
        )
