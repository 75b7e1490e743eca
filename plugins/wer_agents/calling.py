"""Runs a user's function so that it can be given up: a coroutine as a task, anything else in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wer.errors import InfrastructureError, WerError

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
    try:
        if is_coroutine(function):
            return await function(**given)
        found = await _in_thread(function, given)
        return await found if inspect.isawaitable(found) else found
    except WerError:
        raise
    except (Exception, SystemExit) as error:
        raise InfrastructureError(
            f"{name} raised {type(error).__name__}: {error} ({_place(error)}). Nothing is scored. Mend what it needs "
            "and go on with --resume; if you change its code, start a new run."
        ) from error


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
    if acting.done() and not acting.cancelled():
        acting.exception()  # seen


async def _in_thread(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call it in a thread that keeps no process alive: it may hang."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(_wrapped(error))

    def run() -> None:
        result, failure = None, None
        try:
            result = function(**given)
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(run), daemon=True, name="own agent").start()
    return await answer


def _wrapped(error: BaseException) -> BaseException:
    """A future refuses StopIteration."""
    return RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error


def _place(error: BaseException) -> str:
    """Where it was raised, as the last line of a traceback says it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name}" if frames else "somewhere"
