"""The tasks of one environment that a file lists: found by domain and split, and by id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen

from wer.domain.tasks import Row, read_tasks, with_splits
from wer.errors import ConfigError, TaskError
from wer.records import Json, Split, Task, ToolCall


@frozen(kw_only=True)
class Rows:
    """All lines of a file, in its order, each with a domain and a split.

    Attributes:
        env: The environment's name, with which the ids of its tasks begin.
    """

    env: str
    file: Path
    all: tuple[Row, ...]

    @classmethod
    def read(cls, file: Path, env: str, *, seed: int) -> Rows:
        """Read a file; a line without a domain is of the environment's name, one without a split gets one by the seed.

        Raises:
            TaskError: As for `wer.domain.tasks.read_tasks`.
        """
        named = [evolve(row, domain=row.domain or env) for row in read_tasks(file)]
        drawn = {
            row.id: row
            for domain in dict.fromkeys(row.domain for row in named)
            for row in with_splits([row for row in named if row.domain == domain], seed=seed)
        }
        return cls(env=env, file=file, all=tuple(drawn[row.id] for row in named))

    @property
    def content(self) -> Json:
        """What of the file a result depends on."""
        return [[row.id, row.state, row.turns, row.expect, row.domain, row.split] for row in self.all]

    def domains(self) -> tuple[str, ...]:
        """Those that the lines name, in the order of the file."""
        return tuple(dict.fromkeys(row.domain for row in self.all))

    def of(self, domain: str, split: Split) -> list[Row]:
        """The lines of a domain, in the order of the file.

        Raises:
            ConfigError: No line names that domain.
        """
        if domain not in self.domains():
            known = ", ".join(self.domains())
            raise ConfigError(f"{self.env} has no domain {domain!r}. Choose among {known}.")
        return [row for row in self.all if (row.domain, row.split) == (domain, split)]

    def named(self, task: Task) -> Row:
        """The line of a task.

        Raises:
            TaskError: The file has none of that id.
        """
        for row in self.all:
            if f"{self.env}/{row.id}" == task.id:
                return row
        raise TaskError(f"{self.env} has no task {task.id!r}. Its ids are those of {self.file}.")

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """The calls of a task's line by turn, if it has any; see `wer.contracts.Referenced`."""
        written = self.named(task).reference
        if written is None:
            return None
        return tuple(
            tuple(ToolCall(name=call.name, arguments=call.arguments) for call in turn) for turn in written
        )
