"""What one tool call may cost; a call that wants more is the agent's doing and becomes an observation.

Most of a runaway call is Python and is stopped by CPU time. Arithmetic on huge numbers
runs in C, where no signal handler gets a turn, so it is refused by its arguments.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

CPU_LIMIT_S = 2.0
"""CPU seconds of one call; CPU, so that a busy machine changes no observation."""

DIGITS_LIMIT = 4300
"""Decimal digits of a number. Python itself refuses to print a longer integer."""


class TooMuch(BaseException):
    """A call exceeded its limit. Not an `Exception`, which some of the tools swallow."""


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


def refuse_huge_arithmetic(tool: str, arguments: Mapping[str, Any]) -> None:
    """Refuse the arithmetic of ``MathAPI`` that could hang in C.

    Raises:
        TooMuch: A number of the call, or its result, would pass `DIGITS_LIMIT` digits.
    """
    if tool == "power":
        base, exponent = arguments.get("base"), arguments.get("exponent")
        if isinstance(base, int) and isinstance(exponent, int):
            bits = base.bit_length() * max(exponent, 0)
            if abs(base) > 1 and bits > DIGITS_LIMIT * 4:
                raise TooMuch(f"the result has more than {DIGITS_LIMIT} digits")
    for name in ("precision", "decimal_places"):
        wanted = arguments.get(name)
        if isinstance(wanted, int | float) and abs(wanted) > DIGITS_LIMIT:
            raise TooMuch(f"{name} must be at most {DIGITS_LIMIT}, got {wanted}")
