"""Performs a job in a run folder: from a script, from a notebook whose event loop runs already, or awaited."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from attrs import frozen
from rich.console import Console

from wer import folders
from wer.api.result import Run
from wer.api.words import Words, demand_known
from wer.configuration import RunConfig
from wer.display import Display
from wer.jobs import Job, carry_out
from wer.loop.roles import fetch_models
from wer.plugins import Plugins

P = ParamSpec("P")
T = TypeVar("T")


@frozen(kw_only=True)
class Performance(Generic[T]):
    """A job that was checked, and can begin.

    Attributes:
        rollouts: The most that it takes.
        root: Where a new run folder goes.
        folder: The run that goes on; None begins a new one.
        progress: Whether to show what happens, on stderr.
    """

    job: Job[T]
    config: RunConfig
    plugins: Plugins
    rollouts: int
    root: Path
    folder: Path | None
    progress: bool

    def fetch(self) -> None:
        """Download the models that the run names, unless they are here."""
        with self._display() as display:
            fetch_models(self.config, display)

    async def perform(self) -> Run:
        """Do the work, in the run's folder.

        Raises:
            WerError: As the command line prints it; a note says how to go on.
        """
        folder = self.folder or folders.create(
            self.root, self.config, command=self.job.command, now=datetime.now(UTC)
        )
        display = self._display()
        display.say(f"run folder: {folder}; at most {self.rollouts:,} rollouts")
        try:
            with folders.locked(folder):
                folders.rewrite(folder, self.config)
                await carry_out(self.job.work, self.config, folder, self.plugins, display)
        except BaseException as error:
            note = f"what is finished is stored; go on with the same call and resume={str(folder)!r}"
            error.add_note(note)
            display.say(note)
            raise
        return Run(folder, self.plugins)

    def _display(self) -> Display:
        # Plain lines in a notebook, too: rich would send its own from a thread, each as a document.
        return Display(
            Console(file=sys.stderr, highlight=False, force_jupyter=False, quiet=not self.progress)
        )


def blocking(prepare: Callable[P, Performance[Any]]) -> Callable[P, Run]:
    """The call that returns when the work is done."""

    @wraps(prepare)
    def call(*args: P.args, **words: P.kwargs) -> Run:
        demand_known(call, words)
        performance = prepare(*args, **words)
        performance.fetch()
        return _finished(performance.perform)

    _presented(call, prepare)
    return call


def awaited(prepare: Callable[P, Performance[Any]]) -> Callable[P, Coroutine[Any, Any, Run]]:
    """The same call as a coroutine function."""

    @wraps(prepare)
    async def call(*args: P.args, **words: P.kwargs) -> Run:
        demand_known(call, words)
        performance = prepare(*args, **words)
        await asyncio.to_thread(performance.fetch)
        return await performance.perform()

    _presented(call, prepare)
    return call


def _presented(call: Any, prepare: Callable[..., Any]) -> None:
    """Have notebooks and ``help`` show a call by its own name, with every word that it takes."""
    name = prepare.__name__.lstrip("_")
    call.__name__ = call.__qualname__ = prepare.__qualname__ = name
    shown = inspect.signature(prepare)
    fixed = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
    words = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=...,
            annotation=getattr(kind, "__forward_arg__", kind),
        )
        for name, kind in Words.__annotations__.items()
    ]
    call.__signature__ = shown.replace(parameters=[*fixed, *words], return_annotation=Run)


def _finished(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end: here, or beside an event loop that runs here already, as in a notebook."""
    return _beside(work) if _a_loop_runs() else asyncio.run(work())


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _beside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in a thread with a loop of its own, and end it when the waiting is interrupted."""
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[T] = Future()

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None  # this is one
        begun.set_result((asyncio.get_running_loop(), task))
        return await work()

    def run() -> None:
        try:
            ended.set_result(asyncio.run(watched()))
        except BaseException as error:
            ended.set_exception(error)

    thread = threading.Thread(target=run, name="wer")
    thread.start()
    try:
        return ended.result()
    except KeyboardInterrupt as interrupt:
        if not ended.done():
            loop, task = begun.result()
            loop.call_soon_threadsafe(task.cancel)
        for note in getattr(ended.exception(), "__notes__", ()):  # how the run goes on
            interrupt.add_note(note)
        raise
    finally:
        thread.join()
