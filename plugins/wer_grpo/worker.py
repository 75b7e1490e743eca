"""One thread for all of torch's work, so that the rollouts' event loop stays alive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """The work was asked to stop, and did, between two steps."""


class Worker:
    """Runs blocking work in its thread, one piece at a time, and stops it when its caller is cancelled."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wer-grpo")
        self._stop = threading.Event()

    async def run(self, work: Callable[[], T]) -> T:
        """Run the work. On cancellation (Ctrl-C) wait until it has reached its next `check`."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait([future])
            self._stop.clear()
            future.exception()
            raise

    def check(self) -> None:
        """Raise `Stopped` when the work is no longer wanted. Called by the work, between its steps."""
        if self._stop.is_set():
            raise Stopped

    def close(self) -> None:
        """Let the thread end. Safe to call twice."""
        self._pool.shutdown(wait=False)
