"""A whole domain of three things: a class, a file of tasks and a check."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import Attribute, evolve, field, frozen, validators

from wer.contracts import Episode, Roles, Session, Verifier
from wer.domain import sources
from wer.domain.checking import Check, CheckVerifier
from wer.domain.rows import Rows
from wer.domain.schemas import tool_specs
from wer.domain.session import ScriptedSession, StateWorld
from wer.domain.settled import SettledSession
from wer.domain.tasks import Row
from wer.errors import DomainError
from wer.records import NO_SANDBOX, Json, SandboxSpec, Split, Task, ToolCall, ToolSpec, content_hash
from wer.sandboxing.recipe import source
from wer_sandbox.state import VARIABLE

_PIN = re.compile(r"[^\s=<>~!;*]+==[^\s=*]+")


@frozen(kw_only=True)
class DomainOptions:
    """The table ``[environment.NAME]`` of a `Domain`.

    Attributes:
        seed: Decides which of the tasks without a split are training tasks.
    """

    seed: int = 0


def _texts(values: Iterable[str | Path]) -> tuple[str, ...]:
    """A list is taken too."""
    if isinstance(values, (str, Path)):
        raise DomainError(
            f"a Domain takes lists of packages and requirements, got {values!r}. Write [{str(values)!r}]."
        )
    return tuple(map(str, values))


def _packages(values: Iterable[str | Path]) -> tuple[str, ...]:
    """Paths are taken too: absolute, so that none of them looks like a name."""
    if isinstance(values, (str, Path)):
        return _texts(values)
    return tuple(str(each.absolute()) if isinstance(each, Path) else each for each in values)


def _a_class(_: object, attribute: Attribute[type], value: object) -> None:
    if value is not None and not isinstance(value, type):
        raise DomainError(
            f"a Domain is made of a class, got {value!r}. Name the class, and make no instance of it."
        )


def _a_check(_: object, attribute: Attribute[Check], value: object) -> None:
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise DomainError(
            f"the check of a Domain is a plain function check(task, end), got {value!r:.80}. A coroutine can't judge."
        )


def _a_path(_: object, attribute: Attribute[str | Path], value: object) -> None:
    if not isinstance(value, (str, Path)):
        raise DomainError(
            f"the tasks of a Domain are a file, got {value!r:.80}. Write them to a tasks.jsonl."
        )


def _pinned(_: object, attribute: Attribute[Sequence[str]], pins: Sequence[str]) -> None:
    for pin in pins:
        if not _PIN.fullmatch(pin):
            raise DomainError(f"the requirement {pin!r} of a Domain is no exact pin. Write name==version.")


@frozen(slots=False, eq=False)
class Domain:
    """An environment and its verifier. Offer it from a plugin, or name its file: ``--env shop.py:shop``.

    Attributes:
        state: The class: an instance an episode, in the sandbox. Its public methods are the tools.
            Without one there are no tools and no sandbox: the agent has its own, and the check sees the
            state that it says it left behind.
        tasks: A ``tasks.jsonl``; a relative path starts from the folder of the file with the class, or
            without one with the check.
        check: ``check(task, end)``, on the host, pure; see `wer.domain.checking`.
        name: Of the environment, in ids and reports, when it is named by its file; empty is the
            variable's. In a plugin it is the name under which it is offered.
        context: A policy that the agent has to follow; may be empty.
        packages: Further packages of the host that the class imports: names, or paths with a slash. The class's own
            goes along by itself.
        requirements: Exact pins (``name==version``) of libraries that it imports, with all that these
            need: they are installed without dependencies.
        steps_per_turn: Steps with calls that an agent has for one message of the user.
        memory_bytes: Of one episode.
    """

    state: type | None = field(default=None, validator=_a_class)
    tasks_file: str | Path = field(alias="tasks", kw_only=True, validator=_a_path)
    check: Check = field(kw_only=True, validator=_a_check)
    name: str = field(default="", kw_only=True)
    context: str = field(default="", kw_only=True)
    packages: Sequence[str] = field(default=(), kw_only=True, converter=_packages)
    requirements: Sequence[str] = field(default=(), kw_only=True, converter=_texts, validator=_pinned)
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
        return {
            **({"class": self._code} if self.state is not None else {}),
            "tasks": content_hash([self._rows.content, self.context]),
            "check": sources.digest_of(self.check),
        }

    def domains(self) -> Sequence[str]:
        """Those that the tasks name, in the order of the file; a task without one is of the environment's name."""
        return self._rows.domains()

    def verifier(self) -> str:
        """Its own check."""
        return self._verifier or self.name

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The tasks of a domain, in the order of the file."""
        return [self._task(row, split) for row in self._rows.of(domain, split)]

    def sandbox(self, domain: str) -> SandboxSpec:
        """One sandbox with the class, for all domains."""
        if self._source is None:
            return NO_SANDBOX
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
        if self.state is None:
            return SettledSession(task)
        world = StateWorld(task, episode)
        return ScriptedSession(task.turns, world, steps_per_turn=self.steps_per_turn)

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the task's line expects."""
        return self._rows.named(task).expect

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """The calls of the task's line, if it has any; see `wer.contracts.Referenced`.

        Without a class they are of tools that nobody here can call.
        """
        return None if self.state is None else self._rows.reference(task)

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools on offer, in every task."""
        return () if self.state is None else tool_specs(self.state)

    @cached_property
    def _source(self) -> sources.Source | None:
        return None if self.state is None else sources.source_of(self.state)

    @cached_property
    def _code(self) -> str:
        if self._source is None:
            return ""
        paths = [source(name) for name in (*self._source.packages, *self.packages)]
        return content_hash([sources.digest(*paths), self.requirements, self._source.name])

    @cached_property
    def _rows(self) -> Rows:
        folder = sources.folder_of(self.check) if self._source is None else self._source.file.parent
        return Rows.read(folder / self.tasks_file, self.name, seed=self._options.seed)

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
