"""A worker: one actor of a node, with its own environments, sandbox pools and executor.

It gets the run's configuration and units of work as text, and answers with text. It judges
nothing, stores nothing and knows no cap: its driver does. Ray makes an actor of this
class, which imports no Ray itself.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

from wer import plugins
from wer.codec import from_json, to_json
from wer.configuration import from_toml
from wer.errors import WerError
from wer.loop.local import LocalRunner
from wer.loop.workplace import workplace
from wer.records import Task, Unit, Usage
from wer_ray.answers import Answer, Hello, failure_of, write


class Purse:
    """What has been spent here and was not told yet; a `wer.loop.ledger.Spending`."""

    def __init__(self) -> None:
        self._spent: dict[str, Usage] = {}
        self._faults: Counter[tuple[str, str]] = Counter()

    def add_spend(self, role: str, usage: Usage) -> None:
        """Remember it until the next answer."""
        self._spent[role] = self._spent.get(role, Usage()) + usage

    def add_fault(self, kind: str, place: str) -> None:
        """Remember it until the next answer."""
        self._faults[kind, place] += 1

    def spend(self) -> Mapping[str, Usage]:
        """What the next answer will tell."""
        return dict(self._spent)

    def count_rollouts(self) -> int:
        """The driver counts them."""
        return 0

    def empty(self) -> tuple[Mapping[str, Usage], Sequence[tuple[str, str, int]]]:
        """Give what was spent and what failed, and forget it."""
        spent, self._spent = self._spent, {}
        faults, self._faults = self._faults, Counter()
        return spent, [(*fault, count) for fault, count in faults.items()]


class Worker:
    """Runs units for one driver, many at a time. Every method answers with `answers.Answer`."""

    def __init__(self) -> None:
        self._opened = AsyncExitStack()
        self._purse = Purse()
        self._said: list[str] = []
        self._runner: LocalRunner | None = None
        self._running = self._finished = 0

    async def version(self) -> str:
        """Say which WER this is, before anything that another one might not understand: the text ``wer``."""
        return await self._answer(self._version)

    async def open(self, config: str, environ: Mapping[str, str]) -> str:
        """Open the executor and the sandboxes, and say hello.

        Args:
            config: The run's configuration, TOML.
            environ: Environment variables that the driver was asked to forward.
        """
        os.environ.update(environ)
        return await self._answer(lambda: self._open(config))

    async def execute(self, unit: str) -> str:
        """Run one unit: the texts ``trajectory`` and ``evidence``."""
        return await self._answer(lambda: self._execute(unit))

    async def expect(self, task: str) -> str:
        """Make what a verifier compares a task with: the text ``expect``."""
        return await self._answer(lambda: self._expect(task))

    async def health(self) -> str:
        """Say hello again."""
        return await self._answer(self._hello)

    async def close(self) -> str:
        """Close executor and sandboxes. Nothing is asked afterwards."""
        return await self._answer(self._close)

    async def _version(self) -> Mapping[str, str]:
        return {"wer": version("wer-skills")}

    async def _open(self, config: str) -> Mapping[str, str]:
        place = workplace(
            from_toml(config), plugins=plugins.load(), spending=self._purse, say=self._said.append
        )
        self._runner = await self._opened.enter_async_context(place)
        return await self._hello()

    async def _execute(self, unit: str) -> Mapping[str, str]:
        self._running += 1
        try:
            trajectory, evidence = await self._place.execute(from_json(unit, Unit))
        finally:
            self._running -= 1
        self._finished += 1
        return {"trajectory": to_json(trajectory), "evidence": to_json(evidence)}

    async def _expect(self, task: str) -> Mapping[str, str]:
        return {"expect": json.dumps(await self._place.expect(from_json(task, Task)))}

    async def _hello(self) -> Mapping[str, str]:
        hello = Hello(
            identity=self._place.world.identity,
            isolation=self._place.isolation,
            concurrency=self._place.concurrency,
            running=self._running,
            finished=self._finished,
        )
        return {"hello": to_json(hello)}

    async def _close(self) -> Mapping[str, str]:
        await self._opened.aclose()
        return {}

    @property
    def _place(self) -> LocalRunner:
        if self._runner is None:
            raise WerError("the Ray worker was asked to work before it was open")
        return self._runner

    async def _answer(self, work: Callable[[], Coroutine[Any, Any, Mapping[str, str]]]) -> str:
        """Do it, and answer with the result or the failure, the spend and the lines meanwhile."""
        result: Mapping[str, str] = {}
        failure = None
        try:
            result = await work()
        except Exception as error:  # whatever it is, the driver must hear of it as data
            failure = failure_of(error)
        said, self._said[:] = tuple(self._said), ()
        spent, faults = self._purse.empty()
        return write(Answer(result=result, failure=failure, spent=spent, faults=faults, said=said))
