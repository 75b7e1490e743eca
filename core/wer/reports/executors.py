"""Pass@1 with each executor of a run that has several: whether what helps one helps another."""

from __future__ import annotations

from collections.abc import Iterator

from wer.agents import called
from wer.reports.results import AVERAGE, results, title_of
from wer.reports.statistics import Estimate
from wer.store import Store


def by_executor(store: Store) -> list[list[str]]:
    """A row a condition and a column an executor, headings first; empty where the run has only one.

    A cell is the average over domains with equal weights. The last column is of all trials together.
    """
    names = store.executors()
    if not names:
        return []
    each = [results(store, executor=name) for name in names]
    overall = results(store)
    measured = [name for name in overall.conditions if any(name in found.conditions for found in each)]
    rows = [
        [title_of(condition), *(_figure(found.cell(condition, AVERAGE)) for found in (*each, overall))]
        for condition in measured
    ]
    return [["condition", *map(called, names), "all executors"], *rows]


def sentences(store: Store) -> Iterator[str]:
    """The same, a line a condition."""
    if found := by_executor(store):
        heading, *rows = found
        for condition, *cells in rows:
            figures = "; ".join(f"{name} {cell}" for name, cell in zip(heading[1:], cells, strict=True))
            yield f"{condition}, by executor: {figures}."


def _figure(estimate: Estimate | None) -> str:
    return "-" if estimate is None else estimate.in_percent
