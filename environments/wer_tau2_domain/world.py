"""One episode's world: one environment of the package, in which agent and user act by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from wer_sandbox.limits import TooMuch, cpu_limit

if TYPE_CHECKING:
    from wer_tau2_domain.package import Package

TEXT_LIMIT = 1_000_000
"""Characters of one result; far beyond any of the benchmark's."""


class World:
    """The databases and tools behind one task.

    Made once in the server; every episode is a fork of it, and begins with `reset`.
    """

    exposed: ClassVar[tuple[str, ...]] = ("reset", "prompt", "call", "gold", "export")

    def __init__(self, package: Package) -> None:
        self._package = package
        self._environment: Any = None

    def reset(self, domain: str, initial_state: Mapping[str, Any] | None) -> None:
        """Put a task's world in place as the package's orchestrator does. Once an episode."""
        if self._environment is not None:
            raise ValueError("the episode has begun already: its databases can't be put back")
        self._environment = self._package.environments[domain]
        state = self._package.tasks.InitialState.model_validate(initial_state or {})
        self._environment.set_state(
            initialization_data=state.initialization_data,
            initialization_actions=state.initialization_actions,
            message_history=state.message_history or [],
        )

    def prompt(self, domain: str, scenario: Mapping[str, Any]) -> str:
        """What the simulated user of a task is told."""
        return self._package.user_prompt(domain, scenario)

    def call(self, name: str, arguments: Mapping[str, Any], requestor: str) -> dict[str, Any]:
        """Run one tool of the agent's or the user's; whatever goes wrong in it is the answer.

        Args:
            requestor: ``assistant`` or ``user``.

        Returns:
            ``text``, what the model reads, and ``ok``, False where the package counts an error.
        """
        try:
            call = self._package.messages.ToolCall(name=name, arguments=arguments, requestor=requestor)
            with cpu_limit():
                answer = self._environment.get_response(call)
        except (Exception, TooMuch) as error:
            return _failed(str(error))
        if len(answer.content) > TEXT_LIMIT:
            return _failed(f"the result has more than {TEXT_LIMIT} characters")
        return {"text": answer.content, "ok": not answer.error}

    def gold(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Do what the reference does, as the package's evaluator does: without syncing, errors ignored."""
        for action in map(self._package.tasks.Action.model_validate, actions):
            try:
                self._environment.make_tool_call(
                    tool_name=action.name, requestor=action.requestor, **action.arguments
                )
            except Exception:  # noqa: S112 - the evaluator logs it and goes on
                continue

    def export(self, assertions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Both databases' hashes, and then whether each of the task's assertions holds.

        Returns:
            ``db`` and ``user_db``, None where there is no such database, and ``assertions``.
        """
        return {
            "db": self._hash("get_db_hash"),
            "user_db": self._hash("get_user_db_hash"),
            "assertions": [self._holds(assertion) for assertion in assertions],
        }

    def _hash(self, method: str) -> str | None:
        """A database that an agent filled with what can't be hashed equals no other one."""
        try:
            digest: str | None = getattr(self._environment, method)()
        except Exception as error:
            return f"no hash: {type(error).__name__}"
        return digest

    def _holds(self, assertion: Mapping[str, Any]) -> bool:
        try:
            checked = self._package.tasks.EnvAssertion.model_validate(assertion)
            return bool(self._environment.run_env_assertion(checked, raise_assertion_error=False))
        except Exception:
            return False


def _failed(why: str) -> dict[str, Any]:
    return {"text": f"Error: {why}", "ok": False}
