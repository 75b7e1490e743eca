"""What one call of a domain may cost: for tools that an agent could make run for hours.

A call that wants more is the agent's doing, so a domain turns `TooMuch` into an answer. Work
in C that lets no signal handler have a turn is not stopped here: a domain with such tools
refuses it by its arguments.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_LIMIT_S = 2.0
"""CPU seconds of one call; CPU, so that a busy machine changes no observation."""


class TooMuch(BaseException):
    """A call exceeded its limit. Not an `Exception`, which some tools swallow."""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise TooMuch(f"the call took more than {CPU_LIMIT_S:g} seconds")


@contextmanager
def cpu_limit() -> Iterator[None]:
    """Stop the block after `CPU_LIMIT_S`.

    Raises:
        TooMuch: Inside the block, when its time is over.
    """
    previous = signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)
