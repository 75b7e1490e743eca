"""What a run found, computed from its store and from nothing else, so that anyone can compute it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from wer.loop.measuring import AGAIN, NOOP
from wer.reports import statistics
from wer.reports.statistics import Difference, Estimate, Outcomes
from wer.store import Store

AVERAGE = "average"
_TITLES = {
    "none": "no skill",
    "skill": "this skill",
    "seed": "seed skill",
    "untrained": "untrained optimizer",
    "refined": "refined skill",
    AGAIN: "the same again (A/A)",
    NOOP: "agent that does nothing",
}
_LEVEL = 0.05


def title_of(condition: str) -> str:
    """A condition's name in a report."""
    return _TITLES.get(condition, condition)


@frozen(kw_only=True)
class Cell:
    """Pass@1 of one condition in one domain, or averaged over domains with equal weight.

    Attributes:
        domain: ``env/domain``, or `AVERAGE`.
    """

    condition: str
    domain: str
    estimate: Estimate


@frozen(kw_only=True)
class Contrast:
    """A paired difference between two conditions, over the tasks and seeds that both have.

    Domains weigh the same, as in the table's average.

    Attributes:
        family: How many comparisons the difference's p is corrected for.
    """

    better: str
    base: str
    difference: Difference
    family: int = 1

    @property
    def finding(self) -> str:
        """``better``, ``worse`` or ``unclear``: what the interval and p allow to say at the 5 % level."""
        if self.difference.p >= _LEVEL or self.difference.low <= 0 <= self.difference.high:
            return "unclear"
        return "better" if self.difference.low > 0 else "worse"

    def sentence(self) -> str:
        """Say in words what the difference shows, and what it doesn't."""
        points, low, high = (
            100 * value for value in (self.difference.mean, self.difference.low, self.difference.high)
        )
        family = f" after Holm's correction for {self.family}" if self.family > 1 else ""
        figures = f"{points:+.1f} points (95 % interval {low:+.1f} to {high:+.1f}, p = {self.difference.p:.2g}{family})"
        better, base = title_of(self.better), title_of(self.base)
        if self.finding != "unclear":
            return f"{better} is {self.finding} than {base}: {figures}."
        return (
            f"{better} and {base} can't be told apart: {figures}. "
            "A difference of this size may be noise; more tasks or trials would say."
        )


@frozen(kw_only=True)
class Results:
    """Everything that a report prints about the measured split.

    Attributes:
        domains: As ``env/domain``.
    """

    cells: tuple[Cell, ...]
    contrasts: tuple[Contrast, ...]
    conditions: tuple[str, ...]
    domains: tuple[str, ...]

    def cell(self, condition: str, domain: str) -> Estimate | None:
        """The estimate of one cell, if that condition was measured there.

        Args:
            domain: ``env/domain``, or what `heading` makes of it.
        """
        for cell in self.cells:
            if cell.condition == condition and domain in (cell.domain, self.heading(cell.domain)):
                return cell.estimate
        return None

    def figures(self) -> Mapping[str, float]:
        """Every estimate with its interval by name, for trackers: ``refined/average/pass_1``, ``.../low``."""
        return {
            f"{cell.condition}/{self.heading(cell.domain)}/{name}": value
            for cell in self.cells
            for name, value in (
                ("pass_1", cell.estimate.mean),
                ("low", cell.estimate.low),
                ("high", cell.estimate.high),
            )
        }

    def heading(self, domain: str) -> str:
        """A domain's name without its environment, where only one environment has such a domain."""
        plain = domain.partition("/")[2] or domain
        alike = [name for name in self.domains if name.partition("/")[2] == plain]
        return domain if len(alike) > 1 or plain == AVERAGE else plain


def results(store: Store, *, executor: str = "") -> Results:
    """Compute every figure from the stored verdicts.

    Args:
        executor: As for `outcomes_of`.
    """
    outcomes = outcomes_of(store, executor=executor)
    conditions = tuple(sorted(outcomes, key=lambda name: name == NOOP))
    domains = tuple(dict.fromkeys(domain for by_domain in outcomes.values() for domain in by_domain))
    cells = tuple(
        cell for condition in conditions for cell in _cells(condition, outcomes[condition], domains)
    )
    contrasts = [
        Contrast(
            better=better,
            base=base,
            difference=statistics.equal_weight_difference(shared),
        )
        for better, base in _pairs(conditions, bases(store))
        if (shared := _shared(outcomes[better], outcomes[base]))
    ]
    return Results(cells=cells, contrasts=_corrected(contrasts), conditions=conditions, domains=domains)


def bases(store: Store) -> Sequence[str]:
    """The conditions that others are compared with, the one that may have been measured twice first."""
    return (store.document("about", "bases") or "seed none").split()


def outcomes_of(store: Store, *, executor: str = "") -> Mapping[str, Mapping[str, Outcomes]]:
    """What was measured: passed or not by condition, domain and task, trial by trial.

    Args:
        executor: Only the trials with one of several; empty is all.
    """
    outcomes: dict[str, dict[str, dict[str, list[bool]]]] = {}
    for condition, domain, task, _, passed in store.results(executor):
        outcomes.setdefault(condition, {}).setdefault(domain, {}).setdefault(task, []).append(passed)
    return outcomes


def _corrected(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Where several methods are compared with one base, correct their p for that."""
    corrected = list(contrasts)
    for base in {contrast.base for contrast in contrasts}:
        places = [i for i, each in enumerate(contrasts) if each.base == base and each.better not in _TITLES]
        adjusted = statistics.holm([contrasts[i].difference.p for i in places])
        for i, p in zip(places, adjusted, strict=True):
            difference = evolve(contrasts[i].difference, p=p)
            corrected[i] = evolve(contrasts[i], difference=difference, family=len(places))
    return tuple(corrected)


def _cells(condition: str, by_domain: Mapping[str, Outcomes], domains: Sequence[str]) -> Sequence[Cell]:
    cells = [
        Cell(condition=condition, domain=domain, estimate=statistics.pass_at_1(by_domain[domain]))
        for domain in domains
        if domain in by_domain
    ]
    average = statistics.equal_weight_average([by_domain[cell.domain] for cell in cells])
    return [*cells, Cell(condition=condition, domain=AVERAGE, estimate=average)]


def _shared(
    better: Mapping[str, Outcomes], base: Mapping[str, Outcomes]
) -> Sequence[tuple[Outcomes, Outcomes]]:
    """The outcomes of both conditions in each domain that has tasks of both."""
    return [
        (tasks, base[domain])
        for domain, tasks in better.items()
        if tasks.keys() & base.get(domain, {}).keys()
    ]


def _pairs(conditions: Sequence[str], bases: Sequence[str]) -> Sequence[tuple[str, str]]:
    """The contrasts that the protocol asks for, what was made against what it started from; others with their bases."""
    protocol = [
        ("skill", "none"),
        ("seed", "none"),
        ("untrained", "seed"),
        ("refined", "none"),
        ("refined", "seed"),
        ("refined", "untrained"),
    ]
    others = [name for name in conditions if name not in _TITLES]
    compared = [(other, base) for base in bases for other in others if other != base]
    return [pair for pair in (*protocol, (AGAIN, bases[0]), *compared) if set(pair) <= set(conditions)]
