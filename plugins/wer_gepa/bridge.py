"""Lets the gepa package, which blocks, wait in its own thread for work on the run's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from wer.errors import PromptTooLong

T = TypeVar("T")


class Bridge:
    """Belongs to one search. After a failure nothing more is begun, whatever gepa does with the error.

    The package logs some errors and tries again: a spent budget, or a model that is gone, must end it.

    Attributes:
        failure: The first that ended the search, if any did.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.failure: Exception | None = None

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do this on the loop and wait for it; called in gepa's thread.

        Raises:
            PromptTooLong: Of this one prompt; gepa goes on with others.
            Exception: What the work raised, or the search's first failure.
        """
        if self.failure is not None:
            raise self.failure
        try:
            return asyncio.run_coroutine_threadsafe(work(), self._loop).result()
        except PromptTooLong:
            raise
        except Exception as error:
            self.failure = self.failure or error
            raise

    def close(self, why: Exception) -> None:
        """Begin nothing more: whoever waited for the search is gone."""
        self.failure = self.failure or why
