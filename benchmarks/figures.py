"""One measured figure: a ratio or a cost of one unit, what it should be, and what peers have in the same run."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, field, frozen

_HOLDS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge}


@frozen(kw_only=True)
class Target:
    """What a figure should be, for example ``<= 0.6``."""

    sign: Literal["<=", "<", ">="]
    value: float

    def __str__(self) -> str:
        return f"{self.sign.replace('<=', '≤').replace('>=', '≥')} {self.value:g}"


@frozen(kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        name: ``BENCHMARK/what``.
        value: The best of the samples: what else the machine does can only make it worse.
        unit: Of the value and of what is beside it.
        samples: All of them, in order; each was measured next to those of the peers.
        target: None where there is only something to compare with.
        beside: The same of others, by name, the best of as many samples.
        note: What a reader could take wrongly, or why a peer is missing.
    """

    name: str
    value: float
    unit: str
    samples: tuple[float, ...]
    target: Target | None = None
    beside: Mapping[str, float] = field(factory=dict)
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        return None if self.target is None else _HOLDS[self.target.sign](self.value, self.target.value)

    def __str__(self) -> str:
        state = {True: "met", False: "MISSED", None: ""}[self.met]
        target = f"  ({self.target}: {state})" if self.target else ""
        others = "".join(f"\n      {name}: {rounded(value)}" for name, value in self.beside.items())
        return f"  {self.name}: {rounded(self.value)} {self.unit}{target}{others}"


def least(name: str, samples: Sequence[float], **rest: Any) -> Figure:
    """A figure of which less is better."""
    return Figure(name=name, value=min(samples), samples=tuple(samples), **rest)


def most(name: str, samples: Sequence[float], **rest: Any) -> Figure:
    """A figure of which more is better."""
    return Figure(name=name, value=max(samples), samples=tuple(samples), **rest)


def rounded(value: float) -> str:
    """Three significant digits, and no more than a figure deserves."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(path: Path, figures: Sequence[Figure], about: Mapping[str, Any]) -> None:
    """Write everything as JSON."""
    rows = [{**asdict(figure), "met": figure.met} for figure in figures]
    path.write_text(json.dumps({**about, "figures": rows}, indent=1) + "\n")


def table(figures: Sequence[Figure]) -> str:
    """The figures as a table in markdown."""
    lines = ["| figure | measured | target | beside it, in the same run |", "|---|---|---|---|"]
    for figure in figures:
        mark = {True: " ✓", False: " **missed**", None: ""}[figure.met]
        others = "; ".join(f"{name} {rounded(value)}" for name, value in figure.beside.items())
        note = f"{others}. {figure.note}" if others and figure.note else others or figure.note
        target = f"{figure.target}{mark}" if figure.target else ""
        lines.append(f"| {figure.name} | {rounded(figure.value)} {figure.unit} | {target} | {note} |")
    return "\n".join(lines)
