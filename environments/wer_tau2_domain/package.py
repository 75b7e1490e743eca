"""The benchmark's package, loaded without the model clients that its modules import.

The words of its agent, its user simulator and its orchestrator are in modules that also
call models and draw tables: those imports would add litellm and pandas (200 MB and six
seconds a worker) for functions that are never called here, so two modules are left out.
"""

from __future__ import annotations

import importlib
import random
import sys
import uuid
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from wer_tau2_domain.digest import watch

DOMAINS = ("airline", "retail", "telecom")

_LEFT_OUT = ("tau2.utils.llm_utils", "tau2.data_model.simulation")
_STOPS = {"stop": "STOP", "transfer": "TRANSFER", "out_of_scope": "OUT_OF_SCOPE"}


class _Absent(ModuleType):
    """A module whose every name is a class that nobody uses."""

    def __getattr__(self, name: str) -> type[Any]:
        return type(name, (), {})


class Package:
    """What WER needs of ``tau2``.

    Attributes:
        environments: One a domain, with its database; a forked episode changes its own copy.
        tasks: Its module of records: actions, assertions, scenarios.
        messages: Its module of messages.
    """

    def __init__(self) -> None:
        self.environments: Mapping[str, Any] = {
            name: _module(f"domains.{name}.environment").get_environment() for name in DOMAINS
        }
        for environment in self.environments.values():
            watch(environment.tools)
        self.tasks = _module("data_model.tasks")
        self.messages = _module("data_model.message")
        self._agent = _module("agent.llm_agent")
        self._user = _module("user.user_simulator")
        self._orchestrator = _module("orchestrator.orchestrator")

    def user_prompt(self, domain: str, scenario: Mapping[str, Any]) -> str:
        """What the simulated user is told, from the task's ``user_scenario``."""
        # Only whether there are tools changes its words, and making schemas of them takes 20 ms.
        tools = None if self.environments[domain].user_tools is None else ()
        instructions = str(self.tasks.UserScenario.model_validate(scenario))
        prompt: str = self._user.UserSimulator(tools=tools, instructions=instructions).system_prompt
        return prompt

    def describe(self) -> dict[str, Any]:
        """Words and tool schemas of every domain, the greeting, and the words that end an episode."""
        return {
            "domains": {name: self._describe(each) for name, each in self.environments.items()},
            "greeting": self._orchestrator.DEFAULT_FIRST_AGENT_MESSAGE.content,
            "stops": {why: getattr(self._user, name) for why, name in _STOPS.items()},
        }

    def _describe(self, environment: Any) -> dict[str, Any]:
        user_tools = environment.get_user_tools() if environment.user_tools is not None else []
        return {
            "prompt": self._agent.SYSTEM_PROMPT.format(
                domain_policy=environment.get_policy(), agent_instruction=self._agent.AGENT_INSTRUCTION
            ),
            "tools": [tool.openai_schema["function"] for tool in environment.get_tools()],
            "user_tools": [tool.openai_schema["function"] for tool in user_tools],
        }


def load() -> Package:
    """Import the package and build its environments, silently and always alike."""
    for name in _LEFT_OUT:
        sys.modules[name] = _Absent(name)
    importlib.import_module("loguru").logger.remove()  # it would print every result
    package = Package()
    # Bills that a telecom tool makes get random ids: the same ones in every episode.
    dice = random.Random(0)  # noqa: S311 - names, not secrets
    named = SimpleNamespace(uuid4=lambda: uuid.UUID(int=dice.getrandbits(128), version=4))
    vars(_module("domains.telecom.tools"))["uuid"] = named
    return package


def _module(name: str) -> Any:
    return importlib.import_module(f"tau2.{name}")
