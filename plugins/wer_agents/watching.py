"""Names an agent whose coroutine holds the event loop: everything else waits for it then, its own time-out too."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

PATIENCE_S = 60.0
"""Seconds for which nothing else may go on."""
_EVERY_S = 5.0

_watched: WeakSet[asyncio.Task[object]] = WeakSet()
_told: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Loops of which it was said: once is enough."""


@contextmanager
def watched(name: str) -> Iterator[None]:
    """Have a thread look whether the loop still turns, and say on stderr who holds it; called in the agent's task.

    Args:
        name: What messages call the agent.
    """
    loop, mine, holder = asyncio.get_running_loop(), asyncio.current_task(), threading.get_ident()
    assert mine is not None
    _watched.add(mine)
    done = threading.Event()

    def look() -> None:
        while not done.wait(min(_EVERY_S, PATIENCE_S)):
            turned = threading.Event()
            try:
                loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # the loop is closed, and the agent was given up
                return
            if not turned.wait(PATIENCE_S) and not done.is_set():
                running = asyncio.current_task(loop)
                if running is mine:
                    _say(loop, name, holder)
                elif running not in _watched:  # else that agent's own thread says it
                    _say(loop, f"something beside {name}, or a task of its own,", holder)
                return

    threading.Thread(target=look, daemon=True, name="watching an own agent").start()
    try:
        yield
    finally:
        done.set()


def _say(loop: asyncio.AbstractEventLoop, name: str, thread: int) -> None:
    if loop in _told:
        return
    _told.add(loop)
    print(
        f"{name} has held the event loop for {PATIENCE_S:g} s ({_place(thread)}): nothing else goes on, and no "
        "time-out can end it. Have it await, or make it a plain function, which runs in a thread. Ctrl-C, pressed "
        "twice, ends the run.",
        file=sys.stderr,
        flush=True,
    )


def _place(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "somewhere"
    last = traceback.extract_stack(frame)[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}"
