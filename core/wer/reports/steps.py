"""The table of a run's update steps that fits a terminal; report.md and ``wer export`` have every figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rich.table import Table

from wer.store import Store

_SHOWN = 20

_Row = Mapping[str, float]


def steps_table(store: Store) -> Table | None:
    """The newest update steps, one a row, or None when the run made none.

    Neighbours that are read together share a column; ``-`` is a figure that the backend
    does not give.
    """
    steps = store.metrics()
    if not steps:
        return None
    left_out = max(0, len(steps) - _SHOWN)
    earlier = f", {left_out} earlier ones are in report.md" if left_out else ""
    drawn = Table(title=f"{len(steps)} update steps{earlier}", title_justify="left", padding=0)
    drawn.add_column("phase\nstep", justify="left")
    for heading in _COLUMNS:
        drawn.add_column(heading, justify="right")
    for stage, step, row in steps[left_out:]:
        drawn.add_row(f"{stage.rpartition('/')[2]}/{step}", *(cell(row) for cell in _COLUMNS.values()))
    return drawn


def _joined(*names: str, digits: int = 0, scale: float = 1.0) -> Callable[[_Row], str]:
    """A cell of figures that are read together, with slashes between them."""

    def cell(row: _Row) -> str:
        return "/".join(f"{scale * row[name]:.{digits}f}" if name in row else "-" for name in names)

    return cell


_percent = partial(_joined, scale=100.0)


_COLUMNS: Mapping[str, Callable[[_Row], str]] = {
    "reward\nwhole": _joined("reward", digits=2),
    "reward\ntask/fmt/len": _joined("reward_task", "reward_fmt", "reward_len", digits=2),
    "groups %\npass/fail/flat": _percent("all_pass", "all_fail", "zero_variance"),
    "advantage %\ntask/fmt/len": _percent(
        "advantage_share_task", "advantage_share_fmt", "advantage_share_len"
    ),
    "clip\n%": _percent("clip_fraction", digits=1),
    "entropy\nnats": _joined("entropy", digits=2),
    "tokens\nin/out": _joined("prompt_tokens", "response_tokens"),
    "skill\nwords": _joined("skill_words"),
    "parsed\n%": _percent("parse_rate"),
    "rollouts\n/s": _joined("rollouts_per_s", digits=2),
    "seconds\nwrite/run/learn": _joined("generation_s", "rollouts_s", "update_s"),
}
"""Heading to cell, in the order of reading: what was earned, what was learnt, what was written, how long."""
