"""The curve over refinement's depth: what passed on the held-out tasks after each round, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wer.loop import depths
from wer.loop.depths import Depth
from wer.reports.statistics import (
    Difference,
    Outcomes,
    equal_weight_average,
    equal_weight_difference,
    holm,
)
from wer.store import Store

_LEVEL = 0.05


def depth_lines(store: Store) -> Iterator[str]:
    """A table in Markdown and what it shows in words, for each policy whose depth was chosen."""
    for label in depths.labels(store):
        yield from _curve(label, depths.curve(store, label))


def _curve(label: str, curve: Sequence[Depth]) -> Iterator[str]:
    best = depths.best_of(curve)
    outcomes = [list(depth.outcomes.values()) for depth in curve]
    estimates = [equal_weight_average(each) for each in outcomes]
    first = estimates[0]
    yield (
        f"{label}, by rounds of refinement: Pass@1 on {first.tasks} tasks held out of the training split, "
        f"{first.trials} rollouts a depth, %:"
    )
    yield ""
    yield "| depth | Pass@1 [95 %] | against the chosen |"
    yield "|---|---|---|"
    others = [i for i, depth in enumerate(curve) if depth is not best]
    chosen = outcomes[curve.index(best)]
    differences = {i: _against(outcomes[i], chosen) for i in others}
    corrected = dict(zip(others, holm([found.p for found in differences.values()]), strict=True))
    for i, (depth, estimate) in enumerate(zip(curve, estimates, strict=True)):
        against = "chosen"
        if i in differences:
            against = f"{100 * differences[i].mean:+.1f} points, p = {corrected[i]:.2g}"
        yield f"| {depth.rounds} | {estimate.in_percent} | {against} |"
    yield ""
    yield _words(best, [curve[i] for i in others if corrected[i] >= _LEVEL], len(others))


def _against(outcomes: Sequence[Outcomes], chosen: Sequence[Outcomes]) -> Difference:
    return equal_weight_difference(list(zip(outcomes, chosen, strict=True)))


def _words(best: Depth, alike: Sequence[Depth], others: int) -> str:
    """Say which depth is kept, and which ones are no worse as far as can be told."""
    kept = f"Depth {best.rounds} is kept: the highest share, and of equal ones the shallowest."
    corrected = f" (paired by task, p after Holm's correction for {others})" if others > 1 else ""
    if alike:
        names = ", ".join(str(depth.rounds) for depth in alike)
        kept += f" It can't be told apart from depth {names}{corrected}."
    elif others:
        kept += f" It can be told apart from the others{corrected}."
    return f"{kept} Its own figure is the best of {others + 1}, and so flatters it."
