"""Two rollouts side by side: the same as far as they go together, then apart, aligned where they meet again."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

Event: TypeAlias = tuple[str, str]
Row: TypeAlias = tuple[int | None, int | None]
"""Places of a left and a right event that stand beside each other; None is a gap."""


def divergence(left: Sequence[Event], right: Sequence[Event]) -> int:
    """How many events both begin with: where the first of them differ."""
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def aligned(left: Sequence[Event], right: Sequence[Event]) -> Sequence[Row]:
    """Put equal events on one row, in order; what differs between them stands beside each other."""
    first = divergence(left, right)
    return [*((at, at) for at in range(first)), *_apart(left, right, first)]


def _apart(left: Sequence[Event], right: Sequence[Event], first: int) -> Iterator[Row]:
    a_last, b_last = (min(len(side), first + _COMPARED) for side in (left, right))
    matcher = difflib.SequenceMatcher(None, left[first:a_last], right[first:b_last], autojunk=False)
    for _, a, a_end, b, b_end in matcher.get_opcodes():
        yield from zip_longest(range(first + a, first + a_end), range(first + b, first + b_end))
    yield from zip_longest(range(a_last, len(left)), range(b_last, len(right)))


_COMPARED = 400
"""Events after the parting that are matched; the time grows with their square, and nobody reads on for so long."""
