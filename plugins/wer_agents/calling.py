"""Runs a user's function so that it can be given up: a coroutine as a task, anything else in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from wer.errors import InfrastructureError, WerError
from wer.toolbox import EpisodeOver
from wer_agents.watching import watched

_GRACE_S = 5.0
"""Seconds in which a coroutine that was cancelled must have ended; a thread can't be ended."""


def is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether a function, or the ``__call__`` of an object, is a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004
    )


async def call(name: str, function: Callable[..., Any], **given: Any) -> Any:
    """Call a user's function and wait for what it gives.

    Args:
        name: What messages call it.

    Raises:
        InfrastructureError: It raised: a failure of the user's, and never one of a skill.
    """
    home = Path.cwd()
    try:
        if is_coroutine(function):
            told = await _as_task(name, function, given)
        else:
            told = await _in_thread(function, given)
        if inspect.isawaitable(told.result):
            told = await _as_task(name, lambda: told.result, {})
    finally:
        _return_to(home)
    error = told.error
    if error is None:
        return told.result
    if isinstance(error, (WerError, EpisodeOver)):
        raise error
    raise InfrastructureError(
        f"{name} raised {f'{type(error).__name__}: {error}'.rstrip(': ')} ({_place(error)}). Nothing is scored. Mend "
        "what it needs and go on with --resume; if you change its code, start a new run."
    ) from error


@frozen
class _Told:
    """How a user's function ended, whatever it raised: a loop ends at some of that, and a future refuses some."""

    result: Any = None
    error: BaseException | None = None


async def until(work: Any, over: asyncio.Event) -> Any:
    """Wait for work, or until there is nothing more to do: None, and the work is given up."""
    acting, ending = asyncio.ensure_future(work), asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait({acting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if over.is_set():
            return None
        if acting.cancelled():
            raise InfrastructureError(
                "your agent was cancelled by something of its own. Mend it, or start a new run."
            )
        return acting.result()
    finally:
        ending.cancel()
        await _give_up(acting)


async def _give_up(acting: asyncio.Future[Any]) -> None:
    acting.cancel()
    await asyncio.wait([acting], timeout=_GRACE_S)
    if acting.done():
        _seen(acting)


def _seen(ended: asyncio.Future[Any]) -> None:
    """Have asyncio not complain that nobody asked for an exception."""
    if not ended.cancelled():
        ended.exception()


async def _as_task(name: str, function: Callable[..., Any], given: dict[str, Any]) -> _Told:
    """Await it as a task of its own: it may be cancelled by itself, or go on when it is cancelled."""

    async def run() -> _Told:
        try:
            with watched(name):
                return _Told(await function(**given))
        except KeyboardInterrupt as stop:  # the user's: who presses Ctrl-C twice means it
            raise KeyboardInterrupt(f"{name} was at {_place(stop)}") from stop
        except BaseException as error:
            return _Told(error=error)

    work = run()
    acting = asyncio.ensure_future(work)
    acting.add_done_callback(_seen)
    try:
        await asyncio.wait([acting])
    finally:
        await _give_up(acting)
        if not acting.done():  # the loop could never be closed
            with suppress(RuntimeError):
                work.close()
            acting.cancel()
    return acting.result()


async def _in_thread(function: Callable[..., Any], given: dict[str, Any]) -> _Told:
    """Call it in a thread that keeps no process alive: it may hang."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Told] = loop.create_future()

    def settle(told: _Told) -> None:
        if not answer.done():
            answer.set_result(told)

    def run() -> None:
        try:
            told = _Told(function(**given))
        except BaseException as error:
            told = _Told(error=error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, told)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(run), daemon=True, name="own agent").start()
    return await answer


def _return_to(home: Path) -> None:
    """Undo a change of the working directory, which is the whole process's: a run's folder may be relative to it."""
    with suppress(OSError):
        os.chdir(home)


def _place(error: BaseException) -> str:
    """Where it was raised, as the last line of a traceback says it."""
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if each.name != "_on_sigint"
    ]  # asyncio's
    return f"{frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name}" if frames else "somewhere"
