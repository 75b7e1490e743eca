"""Parts of a run that a program holds as objects: they get names by which a configuration finds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from wer.domain import Domain
from wer.domain.sources import folder_of
from wer.errors import ConfigError
from wer.references import live, reference_in, reference_to
from wer.skills.documents import slug

Env: TypeAlias = str | Domain | Sequence[str | Domain]


def environments(
    env: Env | None, tasks: str | Path | None, check: Callable[..., Any] | None
) -> Mapping[str, Domain | None]:
    """Name the environments of a call, with the object where it gives one; empty where it names none.

    Raises:
        ConfigError: Something else was given, or an environment and tasks beside it.
    """
    if (tasks is None) != (check is None):
        raise ConfigError(
            f"{'check' if tasks is None else 'tasks'} is given without {'tasks' if tasks is None else 'check'}. "
            "Give both, or an environment, such as a wer.Domain."
        )
    if tasks is not None and check is not None:
        if env is not None:
            raise ConfigError("an environment brings its own tasks and check: give it, or tasks and check.")
        env = Domain(tasks=tasks, check=check)
    if env is None:
        return {}
    several = [env] if isinstance(env, (str, Domain)) or not isinstance(env, Sequence) else env
    return dict(map(_environment, several))


def named(thing: Any, word: str) -> str | None:
    """Name an agent: what it is called already, or a name for a callable.

    Raises:
        ConfigError: It is neither text nor callable.
    """
    if thing is None or isinstance(thing, str):
        return thing
    if not callable(thing):
        raise ConfigError(
            f"{word} is {thing!r:.80} ({type(thing).__name__}), expected a name, or something that can be called."
        )
    return reference_to(thing)


def _environment(env: Any) -> tuple[str, Domain | None]:
    if isinstance(env, str):
        return env, None
    if not isinstance(env, Domain):
        raise ConfigError(
            f"the environment is {env!r:.80} ({type(env).__name__}), expected a wer.Domain, an installed "
            "environment's name, or file.py:NAME."
        )
    for part in (env.check, env.state):
        module = sys.modules.get(getattr(part, "__module__", None) or "")
        for name, value in vars(module).items() if module else ():
            if value is env and module is not None:
                return reference_in(module, name), env
    return live(env.name or _called(env)), env


def _called(env: Domain) -> str:
    """What to call a domain without a name: its class, its file of tasks, or the folder of a plain ``tasks.jsonl``."""
    if env.state is not None:
        return env.state.__name__.lower()
    file = (folder_of(env.check) / env.tasks_file).resolve()
    return slug(file.parent.name if file.stem == "tasks" else file.stem) or "tasks"
