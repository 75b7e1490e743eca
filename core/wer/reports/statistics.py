"""How sure a figure is: every estimate here comes with its interval, and the task is the unit.

Trials of one task resemble each other, so they are clustered: more trials make a
task's own rate sharper, and only more tasks say more about the next task. The
interval level is 95 % throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist, stdev
from typing import TypeAlias

from attrs import frozen

Outcomes: TypeAlias = Mapping[str, Sequence[bool]]
"""Passed or not, trial by trial, of each task by its name."""

_Z = NormalDist().inv_cdf(0.975)
_GRID = 20_000


@frozen(kw_only=True)
class Estimate:
    """A rate with its 95 % interval.

    Attributes:
        mean: In 0..1.
        tasks: How many tasks it rests on.
        trials: How many rollouts in all.
    """

    mean: float
    low: float
    high: float
    tasks: int
    trials: int

    @property
    def in_percent(self) -> str:
        """As reports print it: ``72.2 [50, 86]``."""
        points, low, high = (100 * value for value in (self.mean, self.low, self.high))
        return f"{points:.1f} [{low:.0f}, {high:.0f}]"


@frozen(kw_only=True)
class Difference:
    """A paired difference between two conditions with its 95 % interval.

    Attributes:
        mean: Of the per-task differences, in -1..1; positive when the first is better.
        p: Two-sided, of the hypothesis that the conditions are interchangeable.
        tasks: How many tasks both conditions have.
    """

    mean: float
    low: float
    high: float
    p: float
    tasks: int


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """The score interval of one proportion [Wilson 1927]; sizes may be effective, thus fractional."""
    if trials <= 0:
        raise ValueError(f"an interval needs at least one trial, got {trials!r}")
    rate = successes / trials
    centre = rate + _Z**2 / (2 * trials)
    half = _Z * math.sqrt(rate * (1 - rate) / trials + _Z**2 / (4 * trials**2))
    scale = 1 + _Z**2 / trials
    low, high = (centre - half) / scale, (centre + half) / scale
    return (0.0 if rate == 0 else max(0.0, low)), (1.0 if rate == 1 else min(1.0, high))


def pass_at_1(outcomes: Outcomes) -> Estimate:
    """Mean over tasks of the mean over trials, with a Wilson interval of the effective size.

    The effective size is the number of independent rollouts that would give the
    spread seen between tasks, kept between the number of tasks and that of rollouts.
    With one trial a task this is Wilson's interval itself.
    """
    rates = [_rate(trials) for trials in _checked(outcomes).values()]
    tasks, rollouts = len(rates), sum(map(len, outcomes.values()))
    mean = sum(rates) / tasks
    between = sum((rate - mean) ** 2 for rate in rates) / max(1, tasks - 1) / tasks
    binomial = mean * (1 - mean)
    effective = float(tasks if binomial == 0 or tasks == 1 else rollouts)
    if between > 0:
        effective = max(tasks, min(rollouts, binomial / between))
    low, high = wilson(mean * effective, effective)
    return Estimate(mean=mean, low=low, high=high, tasks=tasks, trials=rollouts)


def equal_weight_average(domains: Sequence[Outcomes]) -> Estimate:
    """Average Pass@1 over domains, each with the same weight however many tasks it has.

    The interval recovers each domain's variance from its own limits [MOVER, Zou and
    Donner 2008], so that one domain gives back its own interval.
    """
    if not domains:
        raise ValueError("an average needs at least one domain")
    parts = [pass_at_1(outcomes) for outcomes in domains]
    mean = sum(part.mean for part in parts) / len(parts)
    below = math.sqrt(sum((part.mean - part.low) ** 2 for part in parts)) / len(parts)
    above = math.sqrt(sum((part.high - part.mean) ** 2 for part in parts)) / len(parts)
    return Estimate(
        mean=mean,
        low=max(0.0, mean - below),
        high=min(1.0, mean + above),
        tasks=sum(part.tasks for part in parts),
        trials=sum(part.trials for part in parts),
    )


def paired_difference(better: Outcomes, base: Outcomes) -> Difference:
    """Compare two conditions task by task, over the tasks that both have.

    The interval is Student's over per-task differences after adding two tasks that
    differ by one trial, one each way [Bonett and Price 2012, for one trial a task], so
    that it never shrinks to a point when all tasks agree.

    Raises:
        ValueError: The conditions have no task in common.
    """
    return equal_weight_difference([(better, base)])


def equal_weight_difference(pairs: Sequence[tuple[Outcomes, Outcomes]], *, level: float = 0.95) -> Difference:
    """Average `paired_difference` over domains, each with the same weight however many tasks it has.

    The domains' variances add up, with the degrees of freedom of Welch and
    Satterthwaite. p flips the sign of each task's difference, weighted as in the mean.

    Args:
        pairs: The outcomes of the two conditions, a domain each.
        level: Of the interval.

    Raises:
        ValueError: There is no domain, or one in which the conditions share no task.
    """
    if not pairs:
        raise ValueError("a difference needs at least one domain")
    parts = [_paired(better, base) for better, base in pairs]
    mean = float(sum(part.mean for part in parts) / len(parts))
    centre = sum(part.centre for part in parts) / len(parts)
    variance = sum(part.variance for part in parts)
    freedom = variance**2 / sum(part.variance**2 / part.freedom for part in parts)
    half = _student(freedom, level) * math.sqrt(variance) / len(parts)
    tasks = sum(len(part.differences) for part in parts)
    return Difference(
        mean=mean,
        low=max(-1.0, min(mean, centre - half)),
        high=min(1.0, max(mean, centre + half)),
        p=_sign_flip([each / len(part.differences) for part in parts for each in part.differences]),
        tasks=tasks,
    )


@frozen(kw_only=True)
class _Paired:
    """Per-task differences of one domain.

    Attributes:
        centre: Their mean with the two added tasks.
        variance: Of the centre, never 0.
        freedom: Degrees of freedom of the variance.
    """

    differences: tuple[Fraction, ...]
    centre: float
    variance: float
    freedom: int

    @property
    def mean(self) -> Fraction:
        return sum(self.differences, Fraction()) / len(self.differences)


def _paired(better: Outcomes, base: Outcomes) -> _Paired:
    shared = [task for task in better if task in base]
    if not shared:
        raise ValueError("a paired difference needs a task that both conditions have")
    differences = tuple(_share(better[task]) - _share(base[task]) for task in shared)
    step = 1 / max(len(trials[task]) for trials in (better, base) for task in shared)
    padded = [*map(float, differences), step, -step]
    centre = sum(padded) / len(padded)
    variance = sum((value - centre) ** 2 for value in padded) / len(padded)
    return _Paired(
        differences=differences,
        centre=centre,
        variance=variance / len(padded),
        freedom=len(padded) - 1,
    )


def pass_hat_k(domains: Sequence[Outcomes]) -> Estimate:
    """pass^k: how likely all k trials of a task pass [Yao et al. 2024, tau-bench], domains weighing the same.

    k is the number of trials of a task, so that this is the share of tasks whose every
    trial passed, with Wilson's interval.
    """
    reliable = [{task: [all(trials)] for task, trials in _checked(tasks).items()} for tasks in domains]
    return equal_weight_average(reliable)


def mean_of_runs(means: Sequence[float]) -> Estimate:
    """The mean over trainings with Student's interval: what another training seed would change.

    Raises:
        ValueError: There are fewer than two.
    """
    if len(means) < 2:
        raise ValueError(f"an interval over trainings needs at least two, got {len(means)}")
    middle = sum(means) / len(means)
    half = _student(len(means) - 1) * stdev(means) / math.sqrt(len(means))
    return Estimate(
        mean=middle,
        low=max(0.0, middle - half),
        high=min(1.0, middle + half),
        tasks=len(means),
        trials=len(means),
    )


def holm(values: Sequence[float]) -> list[float]:
    """Correct p-values for being several, so that the chance of any false one stays [Holm 1979]."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = largest
    return adjusted


def fewer(after: int, before: int, trials: int) -> float:
    """One-sided exact p that ``after`` of ``trials`` passing, and not ``before`` of as many, is chance [Fisher].

    Rollouts that share seeds resemble each other, if anything, which makes it cautious.
    """
    both = after + before
    lowest = range(max(0, both - trials), after + 1)
    chance = sum(math.comb(trials, k) * math.comb(trials, both - k) for k in lowest)
    return chance / math.comb(2 * trials, both)


def rate_difference(after: int, before: int, trials: int) -> tuple[float, float]:
    """The interval of the difference of two rates over as many trials each [Newcombe 1998, method 10]."""
    rates = after / trials, before / trials
    (low, high), (low_before, high_before) = wilson(after, trials), wilson(before, trials)
    below = math.hypot(rates[0] - low, high_before - rates[1])
    above = math.hypot(high - rates[0], rates[1] - low_before)
    return rates[0] - rates[1] - below, rates[0] - rates[1] + above


def smallest_detectable_difference(
    tasks: int, trials: int, *, rate: float = 0.5, consistency: float = 0.5, power: float = 0.8
) -> float:
    """The smallest true gain in Pass@1 that a paired comparison would find at the 5 % level.

    It assumes that a gain of d comes from a share d of the tasks that turn from fail
    to pass, on top of the noise of sampling.

    Args:
        rate: Pass@1 of the base condition.
        consistency: Share of the variance of one outcome that lies between tasks; 1
            when every task always passes or always fails.
    """
    if tasks < 1 or trials < 1:
        raise ValueError(f"needs at least one task and one trial, got {tasks} and {trials}")
    noise = 2 * rate * (1 - rate) * (1 - consistency) / trials
    c = (_Z + NormalDist().inv_cdf(power)) ** 2
    # d^2 = c (noise + d (1 - d)) / tasks, solved for d
    root = math.sqrt(c * c + 4 * (tasks + c) * c * noise)
    return min(1.0, (c + root) / (2 * (tasks + c)))


def fewest_tasks(error: float) -> int:
    """With fewer tasks no paired comparison is below this error rate: of 2^n signs two are as extreme as the data."""
    return math.ceil(math.log2(2 / error))


def _checked(outcomes: Outcomes) -> Outcomes:
    if not outcomes:
        raise ValueError("an estimate needs at least one task")
    for task, trials in outcomes.items():
        if not trials:
            raise ValueError(f"task {task!r} has no trial")
    return outcomes


def _rate(trials: Sequence[bool]) -> float:
    return sum(trials) / len(trials)


def _share(trials: Sequence[bool]) -> Fraction:
    return Fraction(sum(trials), len(trials))


def _student(freedom: float, level: float = 0.95) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def _sign_flip(differences: Sequence[Fraction]) -> float:
    """Exact p of the test that flips the sign of each task's difference with a fair coin.

    Where the common denominator is large, sizes are rounded to 1/`_GRID` of their sum.
    The test stays exact, of a slightly other weighting: rounding looks at no sign.
    """
    import numpy as np

    scale = Fraction(math.lcm(*(difference.denominator for difference in differences)))
    total = sum(map(abs, differences), Fraction())
    if total * scale > _GRID:
        scale = Fraction(_GRID) / total
    steps = [round(difference * scale) for difference in differences]
    reach = sum(map(abs, steps))
    chances = np.zeros(2 * reach + 1)  # of each sum, -reach..reach
    chances[reach] = 1.0
    for size in filter(None, map(abs, steps)):
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    far = np.abs(np.arange(-reach, reach + 1)) >= abs(sum(steps))
    return min(1.0, float(chances[far].sum()))
