"""Agents of the users' own: frozen executors around which there is no model of WER's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from wer.records import End, Json, Outcome, Usage


def _unmetered(usage: Usage) -> None:
    """Book nothing: nobody runs."""


def _uncapped() -> None:
    """Refuse nothing: nobody runs."""


@frozen(kw_only=True)
class AgentSetup:
    """What an agent of the user's own is made from.

    Making one is cheap and pays nothing: it is also done to find what is wrong with it before a run
    begins. What it opens (a server, a process) belongs to one `Executor.execute`.

    Attributes:
        name: As the user wrote it, without the prefix of its kind: ``/home/ada/agent.py:answer``,
            ``python agent.py``, ``http://127.0.0.1:8000/``.
        options: The user's table ``[executor_options]``, still unchecked. ``isolation`` in it is
            what the user says isolates the rollouts of an agent with tools of its own.
        tools: Whether the run's environments offer tools; else the agent has its own, and its
            session is a `Settling` one.
        check: Called before anything is paid in a rollout; raises `BudgetExhausted`.
        charge: Told what something cost as soon as it is known: `UNTOLD` where the agent doesn't say.
    """

    name: str
    options: Mapping[str, Json] = field(factory=dict)
    tools: bool = True
    check: Callable[[], None] = _uncapped
    charge: Callable[[Usage], None] = _unmetered


@runtime_checkable
class Settling(Protocol):
    """A session of an environment without tools: its evidence is what an agent with its own left behind."""

    async def settle(self, outcome: Outcome) -> End:
        """Take the outcome of the whole episode, all turns of it, as evidence. Called once, after `Session.begin`."""
        ...
