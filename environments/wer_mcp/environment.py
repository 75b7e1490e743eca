"""An environment of one MCP server: its tools, and the tasks and the check of whoever runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from wer import references
from wer.contracts import Episode, Roles, Session
from wer.domain import sources
from wer.domain.rows import Rows
from wer.domain.session import ScriptedSession
from wer.domain.tasks import Row
from wer.errors import ConfigError, TaskError
from wer.records import Json, SandboxSpec, Split, Task, ToolCall, content_hash
from wer.tables import structure
from wer_mcp.describing import Description, describe
from wer_mcp.options import Beginning, McpOptions
from wer_mcp.world import McpWorld, encoded

NAME = "mcp"


class Mcp:
    """Implements `wer.contracts.Environment`."""

    def __init__(self, options: McpOptions) -> None:
        self._options = options
        self._check = references.located(options.check, Path.cwd())
        self._digest = sources.digest_of(references.resolve(self._check))

    @property
    def identity(self) -> Mapping[str, str]:
        """See `wer.contracts.Identified`."""
        return {
            "server": self._server,
            "tasks": content_hash([self._rows.content, self._options.context]),
            "check": self._digest,
        }

    def domains(self) -> Sequence[str]:
        """Those that the tasks name, in the order of the file; a task without one is of ``mcp``."""
        return self._rows.domains()

    def verifier(self) -> str:
        """The check that the options name."""
        return "mcp_check"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The tasks of a domain, in the order of the file."""
        return [self._task(row, split) for row in self._rows.of(domain, split)]

    def sandbox(self, domain: str) -> SandboxSpec:
        """One sandbox with the server's package; each episode starts a server of its own in it."""
        options = self._options
        return SandboxSpec(
            name=NAME,
            domain="wer_mcp_domain:domain",
            requirements=options.requirements,
            packages=("wer_mcp_domain",),
            memory_bytes=max(2 << 30, 2 * options.memory_bytes),
            episode_memory_bytes=options.memory_bytes,
            disk_bytes=options.disk_bytes,
            pids=1024,
            call_timeout_s=options.call_timeout_s,
            environ={
                "PYTHONHASHSEED": "0",
                "TZ": "UTC",
                "PYTHONTZPATH": "",  # time zones of the requirement tzdata, alike in every tier
                "MALLOC_ARENA_MAX": "1",  # an arena of each thread would use up the address space
                **options.environ,
                "WER_MCP_COMMAND": json.dumps(options.command),
                "WER_MCP_PRELOAD": json.dumps(options.preload),
            },
        )

    def roles(self) -> Sequence[str]:
        """None: what the user says is in the tasks."""
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin a rollout. Nothing is random but what the server itself rolls."""
        options = self._options
        world = McpWorld(
            task,
            episode,
            beginning=_beginning(task.setup["state"], task.id),
            files=self._files,
            setup=options.setup,
            state=options.state,
        )
        return ScriptedSession(task.turns, world, steps_per_turn=options.steps_per_turn)

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the task's line expects, and where its check is."""
        return {"check": self._check, "expect": self._rows.named(task).expect}

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """The calls of the task's line, if it has any; see `wer.contracts.Referenced`."""
        return self._rows.reference(task)

    @cached_property
    def _description(self) -> Description:
        found = describe(self.sandbox(""), self._files)
        known = [tool.name for tool in found.tools]
        for name, _ in (*self._options.setup, *self._options.state):
            if name not in known:
                raise ConfigError(
                    f"environment.mcp calls {name!r}, which is no tool of the server (tools: {', '.join(known)})."
                )
        return found

    @cached_property
    def _files(self) -> Mapping[str, str]:
        try:
            return {there: encoded(Path(here).read_bytes()) for there, here in self._options.files.items()}
        except OSError as error:
            raise ConfigError(
                f"environment.mcp.files: {error}. Paths start from the working directory."
            ) from error

    @cached_property
    def _server(self) -> str:
        """Everything but the task that decides what an episode answers."""
        options, spec = self._options, self.sandbox("")
        return content_hash([spec.requirements, spec.environ, self._files, options.setup, options.state])

    @cached_property
    def _rows(self) -> Rows:
        rows = Rows.read(Path(self._options.tasks), NAME, seed=self._options.seed)
        for row in rows.all:
            _beginning(row.state, row.id)
        return rows

    def _task(self, row: Row, split: Split) -> Task:
        said = self._description
        steps = self._options.steps_per_turn
        return Task(
            id=f"{NAME}/{row.id}",
            env=NAME,
            domain=row.domain,
            split=split,
            turns=row.turns,
            tools=said.tools,
            context="\n\n".join(filter(None, [said.instructions, self._options.context])),
            setup={"state": row.state, "server": self._server, "steps_per_turn": steps},
        )


def _beginning(state: Mapping[str, Json], task_id: str) -> Beginning:
    """Read a task's ``state``."""
    try:
        return structure(Beginning, state, where="state")
    except ConfigError as error:
        raise TaskError(f"task {task_id!r}: {error}") from error
