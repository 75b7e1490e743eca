"""One policy for trying again: exponential back-off with jitter, and the server's own wish first."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

_back_off = wait_random_exponential(multiplier=0.5, max=30.0)


def patiently(kind: type[Exception], *, retries: int, tell: Callable[[str], None]) -> AsyncRetrying:
    """Give tenacity's loop for failures of one kind.

    Args:
        kind: The exception that is worth another try; it is raised again at the end.
        retries: Tries after the first.
        tell: Gets one line before each wait.
    """

    def wait_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = getattr(error, "retry_after_s", None)
        return float(asked) if asked is not None else float(_back_off(state))

    def before_sleep(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        first_line = (str(error).splitlines() or [""])[0]
        tell(f"trying again ({state.attempt_number} of {retries}): {first_line}")

    return AsyncRetrying(
        retry=retry_if_exception_type(kind),
        stop=stop_after_attempt(retries + 1),
        wait=wait_s,
        before_sleep=before_sleep,
        reraise=True,
    )
