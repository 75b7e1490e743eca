"""One policy for trying again: exponential back-off with jitter, and the server's own wish first.

Every model call passes through here, and nearly all succeed at once: a general library for retries
would cost more than the call's own JSON.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, TypeVar

from attrs import define, field

E = TypeVar("E", bound=Exception)

_FIRST_S = 0.5
_LONGEST_S = 30.0


@define(kw_only=True)
class Attempt:
    """One try. As a context manager it holds a failure back that another try may mend.

    Attributes:
        number: From 1.
        last: No other one follows, so that its failure is raised.
        error: The failure that it held back.
    """

    number: int
    last: bool
    _kind: type[Exception]
    _count: Callable[[Any], None]
    error: Exception | None = field(default=None, init=False)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, self._kind):
            return False
        self._count(error)
        if self.last:
            return False
        self.error = error
        return True

    @property
    def wait_s(self) -> float:
        """Seconds until the next one: what the server asked for, else a random part of a doubling span."""
        asked = getattr(self.error, "retry_after_s", None)
        if asked is not None:
            return float(asked)
        return random.uniform(0.0, min(_LONGEST_S, _FIRST_S * 2.0 ** (self.number - 1)))  # noqa: S311


@define
class _Attempts:
    _kind: type[Exception]
    _retries: int
    _tell: Callable[[str], None]
    _count: Callable[[Any], None]
    _latest: Attempt | None = field(default=None, init=False)

    def __aiter__(self) -> _Attempts:
        return self

    async def __anext__(self) -> Attempt:
        latest = self._latest
        if latest is None:
            number = 1
        elif latest.error is None:
            raise StopAsyncIteration
        else:
            number = latest.number + 1
            first_line = (str(latest.error).splitlines() or [""])[0]
            self._tell(f"trying again ({latest.number} of {self._retries}): {first_line}")
            await asyncio.sleep(latest.wait_s)
        self._latest = Attempt(
            number=number, last=number > self._retries, kind=self._kind, count=self._count
        )
        return self._latest


def patiently(
    kind: type[E],
    *,
    retries: int,
    tell: Callable[[str], None],
    count: Callable[[E], None] = lambda error: None,
) -> AsyncIterator[Attempt]:
    """Give tries until one succeeds: ``async for attempt in patiently(...)``, then ``with attempt``.

    Args:
        kind: The exception that is worth another try; that of the last one is raised.
        retries: Tries after the first.
        tell: Gets one line before each wait.
        count: Gets each failure of the kind, the last one too.
    """
    return _Attempts(kind, retries, tell, count)
