"""Puts back what an agent's own tools work on, before each rollout: a function of the user's, or a command."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from attrs import frozen

from wer.agents import COMMAND, target
from wer.records import Task
from wer.sandboxing.scratch import scratch
from wer_agents.assignment import assignment
from wer_agents.calling import call
from wer_agents.finding import find_reset
from wer_agents.program import run
from wer_agents.words import Words

TASK_FILE = "WER_TASK"
"""The environment variable that names a file with the task, for a command."""


@frozen(kw_only=True)
class Reset:
    """What is done before each rollout.

    Attributes:
        identity: What makes two of them the same one; empty when nothing is done.
    """

    identity: str
    _do: Callable[[Task], Awaitable[object]]

    async def __call__(self, task: Task) -> None:
        """Do it.

        Raises:
            InfrastructureError: It failed, and nothing is known about the agent.
        """
        await self._do(task)


def find(spec: str) -> Reset:
    """Find what a user named: ``agent.py:reset``, ``command: ./reset.sh``, or nothing.

    Raises:
        ConfigError: There is no such function or program.
        AgentError: It can't be called.
    """
    if not spec:
        return Reset(identity="", do=_nothing)
    if spec.startswith(COMMAND):
        words = Words.read(target(spec), known=("task",), setting="executor_options.reset")
        return Reset(identity=words.digest, do=lambda task: _run(words, task))
    found = find_reset(spec)
    return Reset(
        identity=found.code,
        do=lambda task: call(found.name, found.function, **found.arguments(task=assignment(task))),
    )


async def _nothing(task: Task) -> None:
    """Leave everything as it is."""


async def _run(words: Words, task: Task) -> None:
    """Run the command in an empty folder of its own."""
    with scratch("reset") as base:
        folder, file = base / "work", base / "task.json"
        folder.mkdir()
        file.write_text(json.dumps(assignment(task).table()), "utf-8")
        command = words.filled({"task": assignment(task).id})
        await run(command, folder=folder, environ={TASK_FILE: str(file)}, name=f"reset '{words.name}'")
