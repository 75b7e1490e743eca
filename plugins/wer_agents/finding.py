"""Finds a user's function and reads from its parameters how it wants to be called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from attrs import frozen

from wer.agents import called
from wer.domain.sources import digest_of
from wer.errors import AgentError, DomainError
from wer.references import resolve
from wer.tables import nearest

CALLS_TOOLS = ("turn", "skill", "tools", "context", "memory", "seed")
"""Of an agent that calls WER's tools, once a turn; the first three are needed."""
OWNS_TOOLS = ("task", "skill", "seed")
"""Of an agent with tools of its own, once a task; the first two are needed."""

_FORMS = (
    "Write agent(turn, skill, tools), which calls WER's tools and returns its answer; or agent(task, skill, seed), "
    "which has tools of its own and returns a wer.Outcome(messages, state)."
)


@frozen(kw_only=True)
class Found:
    """A function of the user's.

    Attributes:
        name: For messages: ``your agent agent.py:answer``.
        takes: The parameters that it is given, by name.
        code: Hash of its module, and of what that imports from beside it.
    """

    name: str
    function: Callable[..., Any]
    takes: tuple[str, ...]
    code: str

    def arguments(self, **offered: Any) -> dict[str, Any]:
        """Those of the offered arguments that it takes."""
        return {name: offered[name] for name in self.takes}


def find_agent(name: str) -> Found:
    """Find the agent of a reference.

    Raises:
        ConfigError: There is no such file, module or function.
        AgentError: It is no function, or has parameters that nobody can give.
    """
    function, label = resolve(name), f"your agent {called(name)}"
    parameters = _parameters(function, label)
    known = OWNS_TOOLS if "task" in parameters else CALLS_TOOLS
    needed = known[: 2 if "task" in parameters else 3]
    unknown = [each for each, required in parameters.items() if each not in known and required]
    missing = [each for each in needed if each not in parameters]
    if unknown or missing:
        wrong = (
            f"{unknown[0]!r}, which WER doesn't have{nearest(unknown[0], known) or '.'}"
            if unknown
            else f"no {missing[0]!r}."
        )
        raise AgentError(f"{label} takes {', '.join(parameters) or 'nothing'}: {wrong} {_FORMS}")
    takes = tuple(each for each in parameters if each in known)
    return Found(name=label, function=function, takes=takes, code=_code(function, label))


def find_reset(name: str) -> Found:
    """Find the function that puts back what an agent's tools work on.

    Raises:
        ConfigError: There is no such file, module or function.
        AgentError: It is no function of no argument, or of the task.
    """
    function, label = resolve(name), f"reset {called(name)}"
    parameters = _parameters(function, label)
    unknown = [each for each, required in parameters.items() if each != "task" and required]
    if unknown:
        raise AgentError(f"{label} takes {', '.join(unknown)}. Write reset(), or reset(task).")
    takes = tuple(each for each in parameters if each == "task")
    return Found(name=label, function=function, takes=takes, code=_code(function, label))


def _parameters(function: Any, label: str) -> dict[str, bool]:
    """The parameters that can be given by name, and whether each must be."""
    if isinstance(function, type) or not callable(function):
        kind = (
            f"the class {function.__name__}" if isinstance(function, type) else f"a {type(function).__name__}"
        )
        raise AgentError(f"{label} is {kind}; expected a function, or an object that can be called. {_FORMS}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise AgentError(f"the parameters of {label} can't be read: {error}. {_FORMS}") from error
    found = {}
    for each in signature.parameters.values():
        if each.kind is each.POSITIONAL_ONLY:
            raise AgentError(f"{label} takes {each.name!r} by place only. Remove the slash. {_FORMS}")
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            found[each.name] = each.default is each.empty
    return found


def _code(function: Any, label: str) -> str:
    written = inspect.unwrap(function)
    while isinstance(written, functools.partial):
        written = written.func
    if not hasattr(written, "__qualname__"):
        written = type(written)
    try:
        return digest_of(written)
    except DomainError as error:
        raise AgentError(
            f"{label} has no source that could be read, so that nobody could tell whether it is still the same agent. "
            "Put it into a file."
        ) from error
