"""The learning rate as a function of progress alone, so that a resumed run needs no scheduler state."""

from __future__ import annotations

import math


def learning_rate(progress: float, *, peak: float, warmup: float) -> float:
    """Rise linearly, then fall to zero along a cosine.

    Args:
        progress: Share of the whole training that is done, 0..1; the rate of the very
            first step must not be zero, so give the middle of the step.
        warmup: Share of the whole training over which the rate rises.
    """
    if progress < warmup:
        return peak * progress / warmup
    rest = (min(progress, 1.0) - warmup) / (1.0 - warmup)
    return peak * 0.5 * (1.0 + math.cos(math.pi * rest))
