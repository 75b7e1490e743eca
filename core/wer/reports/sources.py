"""What merging cost: which sources' gains the merged skill kept, which it lost, and which can't be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from attrs import frozen

from wer.loop.sources import Checked, kept
from wer.reports.statistics import fewer, holm, rate_difference
from wer.store import Store

_LEVEL = 0.05

Fate: TypeAlias = Literal["kept", "lost", "undecided", "nothing to keep"]


@frozen(kw_only=True)
class Judged:
    """What became of one source's gain.

    Attributes:
        p: One-sided, that the merged skill passes as often, corrected for all sources of the merge.
    """

    found: Checked
    p: float

    @property
    def fate(self) -> Fate:
        """``kept``: passed at least as often; ``lost``: less often, beyond noise; ``undecided``: within it.

        A source that never passed had nothing to keep.
        """
        after, before = sum(self.found.merged), sum(self.found.source)
        if self.found.source and not before:
            return "nothing to keep"
        if not self.found.source or after >= before:
            return "kept"
        return "lost" if self.p <= _LEVEL else "undecided"

    def sentence(self, sources: int) -> str:
        """Both shares, their difference with its interval, and p."""
        n, after, before = len(self.found.merged), sum(self.found.merged), sum(self.found.source)
        low, high = rate_difference(after, before, n)
        family = f" after Holm's correction for {sources}" if sources > 1 else ""
        return (
            f"{self.fate}: {self.found.name} passed {before}/{n} with its own skill and {after}/{n} with the merged "
            f"one ({100 * (after - before) / n:+.0f} points, 95 % interval {100 * low:+.0f} to {100 * high:+.0f}; "
            f"p = {self.p:.2g}{family})"
        )


def judged(outcomes: Sequence[Checked]) -> tuple[Judged, ...]:
    """Compare each source with the merged skill."""
    values = [
        fewer(sum(each.merged), sum(each.source), len(each.merged)) if each.source else 1.0
        for each in outcomes
    ]
    return tuple(Judged(found=each, p=p) for each, p in zip(outcomes, holm(values), strict=True))


def source_lines(store: Store) -> Iterator[str]:
    """A line a merged skill that was checked, and one for each source whose gain it may have lost."""
    for name, outcomes in kept(store).items():
        found = judged(outcomes)
        fates = [each.fate for each in found]
        counts = ", ".join(
            f"{fates.count(fate)} {fate}"
            for fate in ("kept", "lost", "undecided", "nothing to keep")
            if fate in fates
        )
        n = len(outcomes[0].merged)
        yield (
            f"{name}, the merged skill against its {len(found)} sources, {n} rollouts of each where the source "
            f"came from: {counts}."
        )
        for fate in ("lost", "undecided"):
            yield from (each.sentence(len(found)) for each in found if each.fate == fate)
        if "undecided" in fates:
            yield f"{_power(n, len(found))}: raise merge.check_rollouts to decide more."


def _power(n: int, sources: int) -> str:
    """How far a source that always passed must fall before it is called lost."""
    told = [after for after in range(n) if sources * fewer(after, n, n) <= _LEVEL]
    if not told:
        return f"With {n} rollouts and {sources} sources no loss can be told from noise"
    return f"With {n} rollouts and {sources} sources a fall from {n}/{n} is told from noise at {max(told)}/{n} or less"
