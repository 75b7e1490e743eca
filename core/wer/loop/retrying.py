"""One policy for trying again: exponential back-off with jitter, and the server's own wish first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

_back_off = wait_random_exponential(multiplier=0.5, max=30.0)


async def patiently(
    kind: type[E],
    work: Callable[[int], Awaitable[T]],
    *,
    retries: int,
    tell: Callable[[str], None],
    count: Callable[[E], None] = lambda error: None,
) -> T:
    """Do some work until it succeeds.

    Args:
        kind: The exception that is worth another try; that of the last one is raised.
        work: Gets the number of the try, from 1.
        retries: Tries after the first.
        tell: Gets one line before each wait.
        count: Gets each failure of the kind, the last one too.
    """

    async def counted(number: int) -> T:
        try:
            return await work(number)
        except kind as error:
            count(error)
            raise

    try:
        return await counted(1)  # nearly all succeed at once, and every model call passes here
    except kind as error:
        first = error

    async def again(number: int) -> T:
        if number == 1:
            raise first
        return await counted(number)

    return await _tried(kind, again, retries, tell)


async def _tried(
    kind: type[E], work: Callable[[int], Awaitable[T]], retries: int, tell: Callable[[str], None]
) -> T:
    def wait_s(state: RetryCallState) -> float:
        asked = getattr(_failure(state), "retry_after_s", None)
        return float(asked) if asked is not None else float(_back_off(state))

    def before_sleep(state: RetryCallState) -> None:
        first_line = (str(_failure(state)).splitlines() or [""])[0]
        tell(f"trying again ({state.attempt_number} of {retries}): {first_line}")

    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(kind),
        stop=stop_after_attempt(retries + 1),
        wait=wait_s,
        before_sleep=before_sleep,
        reraise=True,
    ):
        with attempt:
            result = await work(attempt.retry_state.attempt_number)
    return result


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
