"""The piece of the whole training's learning-rate curve that one launch of the trainer follows."""

from __future__ import annotations

import math

from attrs import frozen


@frozen(kw_only=True)
class Piece:
    """What ``cosine_with_min_lr`` needs to go from one point of the curve to another.

    Attributes:
        rate: The rate that the piece falls from; where it begins, unless it begins with warm-up.
        warmup_ratio: Share of the piece over which the rate rises from 0 to `rate`.
        min_ratio: The rate at the end of the piece, as a share of `rate`.
    """

    rate: float
    warmup_ratio: float
    min_ratio: float


def piece(share: tuple[float, float], peak: float, warmup: float) -> Piece:
    """Give the piece of a linear rise and a fall to zero along a cosine.

    A piece is a half cosine between the curve's two rates: its ends lie on the curve, and
    its middle close by.

    Args:
        share: Where the piece begins and ends, as shares of the whole training, 0..1.
        peak: The highest rate.
        warmup: Share of the whole training over which the rate rises.
    """
    begin, end = share
    last = _falling(end, peak, warmup)
    if begin < warmup:
        return Piece(
            rate=peak, warmup_ratio=min(1.0, (warmup - begin) / (end - begin)), min_ratio=last / peak
        )
    first = _falling(begin, peak, warmup)
    return Piece(rate=first, warmup_ratio=0.0, min_ratio=last / first if first else 0.0)


def _falling(progress: float, peak: float, warmup: float) -> float:
    """The rate after the warm-up is over, the peak before that."""
    rest = max(0.0, min(progress, 1.0) - warmup) / (1.0 - warmup)
    return peak * 0.5 * (1.0 + math.cos(math.pi * rest))
