"""Arithmetic that no time limit stops: on huge numbers it runs in C, where no signal handler gets a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wer_sandbox.limits import TooMuch

DIGITS_LIMIT = 4300
"""Decimal digits of a number. Python itself refuses to print a longer integer."""


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
