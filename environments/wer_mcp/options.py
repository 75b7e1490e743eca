"""The table ``[environment.mcp]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Attribute, field, frozen, validators

from wer.records import Json

Calls = tuple[tuple[str, Mapping[str, Json]], ...]
"""Calls of tools, as ``["tool", {"argument": "value"}]``."""


def _command(_: Any, attribute: Attribute[tuple[str, ...]], words: tuple[str, ...]) -> None:
    python = words[:1] in (("python",), ("python3",))
    if not words or (python and len(words) < 2 + (words[1:2] == ("-m",))):
        raise ValueError(
            f"{attribute.name} is {list(words)!r}; expected a program of a requirement, such as "
            '["mcp-server-sqlite", "--db-path", "shop.db"], or ["python", "-m", "module"], or '
            '["python", "file.py"]'
        )


@frozen(kw_only=True)
class McpOptions:
    """The table ``[environment.mcp]``. Paths start from the working directory.

    Attributes:
        command: Starts the server: a program of a requirement, ``python -m MODULE`` or
            ``python FILE``, with its arguments. It runs in an empty folder of the episode's own.
        tasks: A file of tasks, as of a `wer.Domain`. A task's ``state`` may have ``files``,
            texts by path in the server's folder, and ``calls``, made before the agent's first turn.
        check: ``FILE:FUNCTION``, a check as of a `wer.Domain`.
        requirements: Exact pins (``name==version``) of the server and of all that it needs: they
            are installed without dependencies.
        files: Files that the server finds in its folder in every task: paths here by paths there.
        setup: Calls before those of a task, in every task.
        state: Calls of tools that only read: their answers are the state that the check sees.
        preload: Modules that a ``python FILE`` server imports, imported once and not in each episode.
        environ: Environment variables of the server. There is no network, so it needs no key.
        context: A policy that the agent has to follow, after the server's own instructions.
        steps_per_turn: Steps with calls that an agent has for one message of the user.
        memory_bytes: Of one episode's server.
        disk_bytes: Of the files that one episode's server may write.
        call_timeout_s: Seconds after which a call without an answer breaks the episode.
        seed: Decides which of the tasks without a split are training tasks.
    """

    command: tuple[str, ...] = field(validator=_command)
    tasks: str
    check: str = field(validator=validators.matches_re(r".+:\w+"))
    requirements: tuple[str, ...] = ()
    files: Mapping[str, str] = field(factory=dict)
    setup: Calls = ()
    state: Calls = ()
    preload: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(factory=dict)
    context: str = ""
    steps_per_turn: int = field(default=30, validator=validators.ge(1))
    memory_bytes: int = field(default=512 << 20, validator=validators.ge(64 << 20))
    disk_bytes: int = field(default=16 << 20, validator=validators.ge(1))
    call_timeout_s: float = field(default=60.0, validator=validators.gt(0))
    seed: int = 0


@frozen(kw_only=True)
class Beginning:
    """A task's ``state``: what the server finds when the agent's first turn begins.

    Attributes:
        files: Texts by path in the server's folder.
        calls: Made in this order, after those of ``setup``.
    """

    files: Mapping[str, str] = field(factory=dict)
    calls: Calls = ()
