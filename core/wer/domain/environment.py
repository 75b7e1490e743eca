"""A whole domain of three things: a class, a file of tasks and a check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import evolve, field, frozen, validators

from wer.contracts import Episode, Roles, Session, Verifier
from wer.domain import sources
from wer.domain.checking import Check, CheckVerifier
from wer.domain.schemas import tool_specs
from wer.domain.session import ScriptedSession, StateWorld
from wer.domain.tasks import Row, read_tasks, with_splits
from wer.errors import ConfigError, TaskError
from wer.records import Json, SandboxSpec, Split, Task, ToolCall, ToolSpec, content_hash
from wer.sandboxing.recipe import source
from wer_sandbox.state import VARIABLE


@frozen(kw_only=True)
class DomainOptions:
    """The table ``[environment.NAME]`` of a `Domain`.

    Attributes:
        seed: Decides which of the tasks without a split are training tasks.
    """

    seed: int = 0


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    """A list is taken too."""
    return tuple(values)


@frozen(slots=False, eq=False)
class Domain:
    """An environment and its verifier. Offer it from a plugin, or name its file: ``--env shop.py:shop``.

    Attributes:
        state: The class: an instance an episode, in the sandbox. Its public methods are the tools.
        tasks: A ``tasks.jsonl``; a relative path starts from the folder of the class's file.
        check: ``check(task, end)``, on the host, pure; see `wer.domain.checking`.
        name: Of the environment, in ids and reports, when it is named by its file; empty is the
            variable's. In a plugin it is the name under which it is offered.
        context: A policy that the agent has to follow; may be empty.
        packages: Further packages of the host that the class imports.
        requirements: Exact pins (``name==version``) of libraries that it imports, with all that these
            need: they are installed without dependencies.
        steps_per_turn: Steps with calls that an agent has for one message of the user.
        memory_bytes: Of one episode.
    """

    state: type
    tasks_file: str | Path = field(alias="tasks")
    check: Check = field(kw_only=True, validator=validators.is_callable())
    name: str = field(default="", kw_only=True)
    context: str = field(default="", kw_only=True)
    packages: Sequence[str] = field(default=(), kw_only=True, converter=_texts)
    requirements: Sequence[str] = field(default=(), kw_only=True, converter=_texts)
    steps_per_turn: int = field(default=30, kw_only=True, validator=validators.ge(1))
    memory_bytes: int = field(default=512 << 20, kw_only=True, validator=validators.ge(1 << 20))
    _options: DomainOptions = field(default=DomainOptions(), kw_only=True)
    _verifier: str = field(default="", kw_only=True)

    def __call__(self, options: Mapping[str, Json]) -> Domain:
        """Be the factory that a plugin offers."""
        from wer.tables import structure

        return evolve(self, options=structure(DomainOptions, options, where=f"environment.{self.name}"))

    def named(self, name: str, *, verifier: str = "") -> Domain:
        """Take the name under which it is offered.

        Args:
            verifier: What its verifier is found by; empty is the name.
        """
        return evolve(self, name=name, verifier=verifier or name)

    def judge(self) -> Verifier:
        """Make its verifier."""
        return CheckVerifier(self.check)

    @property
    def identity(self) -> Mapping[str, str]:
        """See `wer.contracts.Identified`."""
        rows = [[row.id, row.state, row.turns, row.expect, row.domain, row.split] for row in self._rows]
        return {
            "class": self._code,
            "tasks": content_hash([rows, self.context]),
            "check": sources.digest_of(self.check),
        }

    def domains(self) -> Sequence[str]:
        """Those that the tasks name, in the order of the file; a task without one is of the environment's name."""
        return tuple(dict.fromkeys(row.domain for row in self._rows))

    def verifier(self) -> str:
        """Its own check."""
        return self._verifier or self.name

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The tasks of a domain, in the order of the file."""
        if domain not in self.domains():
            known = ", ".join(self.domains())
            raise ConfigError(f"{self.name} has no domain {domain!r}. Choose among {known}.")
        return [self._task(row, split) for row in self._rows if (row.domain, row.split) == (domain, split)]

    def sandbox(self, domain: str) -> SandboxSpec:
        """One sandbox with the class, for all domains."""
        return SandboxSpec(
            name=self.name,
            domain="wer_sandbox.state:world",
            requirements=tuple(self.requirements),
            packages=(*self._source.packages, *self.packages),
            memory_bytes=max(1 << 30, 2 * self.memory_bytes),
            episode_memory_bytes=self.memory_bytes,
            environ={"PYTHONHASHSEED": "0", "TZ": "UTC", VARIABLE: self._source.name},
        )

    def roles(self) -> Sequence[str]:
        """None: what the user says is in the tasks."""
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin a rollout. Nothing is random but what the class itself rolls."""
        world = StateWorld(task, episode)
        return ScriptedSession(task.turns, world, steps_per_turn=self.steps_per_turn)

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the task's line expects."""
        return self._row(task).expect

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """The calls of the task's line, if it has any; see `wer.contracts.Referenced`."""
        written = self._row(task).reference
        if written is None:
            return None
        return tuple(
            tuple(ToolCall(name=call.name, arguments=call.arguments) for call in turn) for turn in written
        )

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools on offer, in every task."""
        return tool_specs(self.state)

    @cached_property
    def _source(self) -> sources.Source:
        return sources.source_of(self.state)

    @cached_property
    def _code(self) -> str:
        paths = [source(name) for name in (*self._source.packages, *self.packages)]
        return content_hash([sources.digest(*paths), self.requirements, self._source.name])

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        read = read_tasks(self._source.file.parent / self.tasks_file)
        named = [evolve(row, domain=row.domain or self.name) for row in read]
        by_domain = {
            domain: with_splits([row for row in named if row.domain == domain], seed=self._options.seed)
            for domain in dict.fromkeys(row.domain for row in named)
        }
        drawn = {row.id: row for rows in by_domain.values() for row in rows}
        return tuple(drawn[row.id] for row in named)

    def _task(self, row: Row, split: Split) -> Task:
        return Task(
            id=f"{self.name}/{row.id}",
            env=self.name,
            domain=row.domain,
            split=split,
            turns=row.turns,
            tools=self.tools,
            context=self.context,
            setup={"state": row.state, "code": self._code, "steps_per_turn": self.steps_per_turn},
        )

    def _row(self, task: Task) -> Row:
        for row in self._rows:
            if f"{self.name}/{row.id}" == task.id:
                return row
        raise TaskError(f"{self.name} has no task {task.id!r}. Its ids are those of {self.tasks_file}.")
