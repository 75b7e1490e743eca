"""What a comparison of methods found: one table with costs, one plot, and both as files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from rich.table import Table

from wer.errors import WerError
from wer.loop.depths import rollout_keys
from wer.loop.measuring import AGAIN, NOOP
from wer.methods import BASELINES, method_of
from wer.records import Usage
from wer.reports import costs
from wer.reports.results import AVERAGE, Results, outcomes_of, results, title_of
from wer.reports.statistics import Estimate, mean_of_runs, pass_hat_k
from wer.store import Store

_HEADINGS = ("method", "Pass@1, %", "pass^{k}, %", "rollouts", "tokens", "USD", "tokens a point gained")


@frozen(kw_only=True)
class Spent:
    """What the search of one method cost.

    Attributes:
        rollouts: Distinct ones; what an earlier method had run already is counted for both.
        usage: Of the executor in them, and of the method's writer and merger.
    """

    rollouts: int
    usage: Usage

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.usage.prompt_tokens + self.usage.completion_tokens


def spent(store: Store, method: str) -> Spent:
    """Add up what a method's stages ran and what its writers wrote."""
    had = {
        rollout.key: rollout.trajectory.usage
        for stage, found in store.experiences()
        if stage.startswith(f"{method}/")
        for rollout in found.rollouts
    }
    for key in rollout_keys(store, f"{method}/refined"):
        rollout = store.rollout(key)
        if rollout is not None:
            had[key] = rollout.trajectory.usage
    written = [usage for role, usage in store.spend().items() if role.endswith(f", {method}")]
    return Spent(rollouts=len(had), usage=sum([*had.values(), *written], Usage()))


@frozen(kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        reliable: pass^k over the trials of a task [Yao et al. 2024].
        spent: None for a baseline, which searches nothing.
        gain: Points of Pass@1 over the seed skill.
    """

    condition: str
    estimate: Estimate
    reliable: Estimate
    spent: Spent | None
    gain: float

    def cells(self) -> tuple[str, ...]:
        """As words, in the order of the headings."""
        cost = ("", "", "", "")
        if self.spent is not None:
            usage = self.spent.usage
            a_point = "no gain"
            if self.gain > 0:
                a_point = "unknown" if usage.untold else f"{self.spent.tokens / self.gain:,.0f}"
            cost = (f"{self.spent.rollouts:,}", costs.tokens(usage), costs.usd(usage, 2), a_point)
        return (title_of(self.condition), self.estimate.in_percent, self.reliable.in_percent, *cost)


def rows(store: Store) -> tuple[Row, ...]:
    """Compute every line from the store; what `wer verify` judges again is all that they rest on."""
    found = results(store)
    base = found.cell("seed", AVERAGE)
    lines = []
    for condition in found.conditions:
        estimate = found.cell(condition, AVERAGE)
        if estimate is None or condition == NOOP:
            continue
        method = condition not in (*BASELINES, AGAIN)
        by_domain = outcomes_of(store)[condition]
        lines.append(
            Row(
                condition=condition,
                estimate=estimate,
                reliable=pass_hat_k(list(by_domain.values())),
                spent=spent(store, condition) if method else None,
                gain=100 * (estimate.mean - base.mean) if base else 0.0,
            )
        )
    return tuple(lines)


def over_seeds(found: Results) -> Mapping[str, Estimate]:
    """Each method trained with several seeds: the mean and its interval over those trainings alone."""
    grouped: dict[str, list[float]] = {}
    for condition in found.conditions:
        estimate = found.cell(condition, AVERAGE)
        if "@" in condition and estimate is not None:
            grouped.setdefault(method_of(condition), []).append(estimate.mean)
    return {method: mean_of_runs(means) for method, means in grouped.items() if len(means) > 1}


def bench_table(store: Store) -> Table:
    """The comparison for a terminal."""
    table = Table(title="Methods from one start, Pass@1 and pass^k on the test split", title_justify="left")
    lines = rows(store)
    for heading in _headings(store):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for line in lines:
        table.add_row(*line.cells())
    return table


def bench_lines(store: Store, *, base: str = "seed") -> Iterator[str]:
    """What the table doesn't say by itself: spread over training seeds, and the noise that A/A shows.

    Args:
        base: The condition that was measured twice.
    """
    found = results(store)
    for method, estimate in over_seeds(found).items():
        yield (
            f"{method}, {estimate.tasks} training seeds: {estimate.in_percent} (mean of the runs, interval over "
            "trainings, task noise apart)."
        )
    first, second = found.cell(base, AVERAGE), found.cell(AGAIN, AVERAGE)
    if first is not None and second is not None:
        yield (
            f"A/A control: {title_of(base)}, measured again with other seeds, differs by "
            f"{100 * abs(first.mean - second.mean):.1f} points. That much is noise."
        )


def write_files(store: Store, folder: Path) -> Sequence[Path]:
    """Write ``bench.csv`` and ``bench.tex``, and ``bench.svg`` where matplotlib is installed."""
    lines = [_headings(store), *(line.cells() for line in rows(store))]
    with (folder / "bench.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    (folder / "bench.tex").write_text("\n".join(_latex(lines)) + "\n", "utf-8")
    return [folder / "bench.csv", folder / "bench.tex", plot(store, folder / "bench.svg")]


def plot(store: Store, path: Path) -> Path:
    """Draw Pass@1 with intervals against the tokens that each method's search took.

    Raises:
        WerError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise WerError(
            "the plot needs matplotlib. Install it with: pip install 'wer-skills[plot]'"
        ) from error
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for place, line in enumerate(rows(store)):
        middle = 100 * line.estimate.mean
        spread = [[middle - 100 * line.estimate.low], [100 * line.estimate.high - middle]]
        axes.errorbar([middle], [place], xerr=spread, fmt="o", capsize=3)
    axes.set_yticks(range(len(rows(store))), [title_of(line.condition) for line in rows(store)])
    axes.invert_yaxis()
    axes.set_xlabel("Pass@1 on the test split, %, with 95 % intervals clustered by task")
    figure.savefig(path)
    return path


def _headings(store: Store) -> tuple[str, ...]:
    measured = outcomes_of(store).get("none", {}).values()
    trials = max((len(each) for tasks in measured for each in tasks.values()), default=1)
    return tuple(heading.format(k=trials) for heading in _HEADINGS)


def _latex(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"\\begin{{tabular}}{{l{'r' * (len(lines[0]) - 1)}}}"
    for line in lines:
        yield " & ".join(_escaped(cell) for cell in line) + r" \\"
    yield r"\end{tabular}"


def _escaped(cell: str) -> str:
    return "".join(
        f"\\{char}" if char in "%_&#$" else r"\textasciicircum{}" if char == "^" else char for char in cell
    )
