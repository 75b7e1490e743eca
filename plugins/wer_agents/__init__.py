"""Entry module of the agents that users bring: functions, programs and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import AgentSetup, Executor
from wer.hookspecs import hookimpl


@hookimpl
def wer_agents() -> Mapping[str, Callable[[AgentSetup], Executor]]:
    """Offer ``--executor agent.py:answer``, ``'command: python agent.py'`` and ``http://...``."""
    return {"function": _function, "command": _command, "http": _endpoint}


def _function(setup: AgentSetup) -> Executor:
    from wer_agents.functions import function_agent

    return function_agent(setup)


def _command(setup: AgentSetup) -> Executor:
    from wer_agents.commands import command_agent

    return command_agent(setup)


def _endpoint(setup: AgentSetup) -> Executor:
    from wer_agents.endpoints import endpoint_agent

    return endpoint_agent(setup)
