"""Prints a forecast: rollouts, calls and tokens a role, and what the test split can show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wer.configuration import RunConfig
from wer.loop.checking import check_names
from wer.loop.domains import domains, environments
from wer.loop.roles import concurrency
from wer.plugins import Plugins
from wer.reports.forecast import ASSUMPTIONS, Forecast, Plan, demand_possible, forecast, total
from wer.reports.statistics import fewest_tasks, smallest_detectable_difference


def foresee(
    config: RunConfig,
    plugins: Plugins,
    plan: Plan | None = None,
    *,
    beside: Sequence[tuple[RunConfig, Plan]] = (),
) -> None:
    """Check the configuration as far as it costs nothing, and print what comes.

    Args:
        plan: What the command performs; None is the whole protocol.
        beside: What it performs besides with other settings, such as those of a method.

    Raises:
        WerError: Something can't be had, before anything is built or paid.
    """
    check_names(config, plugins)
    envs = environments(config, plugins)
    chosen = domains(config, envs, test_limit=config.evaluation.test_limit)
    demand_possible(config, chosen, plan)
    at_once = concurrency(config, plugins, envs)
    ahead = [forecast(each, chosen, plugins, part) for each, part in ((config, plan), *beside)]
    print_forecast(Console(), config, total(ahead), at_once)


def print_forecast(console: Console, config: RunConfig, ahead: Forecast, at_once: int) -> None:
    """Print what the run will cost at most, and the smallest difference that it can show."""
    table = Table(
        title="Forecast (an estimate: later phases work on what earlier ones retain)", title_justify="left"
    )
    for heading in ("role", "model", "calls", "prompt tokens", "completion tokens", "USD"):
        left = heading in ("role", "model")
        table.add_column(
            heading, justify="left" if left else "right", overflow="fold" if left else "ellipsis"
        )
    for role in ahead.roles:
        usd = "unknown" if role.usd is None else f"{role.usd:.2f}"
        figures = (role.calls, role.prompt_tokens, role.completion_tokens)
        counts = ("unknown" if figure is None else f"{figure:,}" for figure in figures)
        table.add_row(role.role, escape(role.model), *counts, usd)
    console.print(table)
    for stage, count in ahead.rollouts:
        console.print(f"  {count:6,} rollouts  {stage}", highlight=False)
    console.print(f"  {ahead.total:6,} rollouts in all; {ASSUMPTIONS}", highlight=False)
    for warning in _early_ends(config, ahead):
        console.print(f"  {warning}, which would stop it early", highlight=False)
    console.print(
        f"  about {ahead.minutes(at_once):.0f} minutes of model calls at that pace; "
        "the progress line shows the real one",
        highlight=False,
    )
    if not ahead.measured:
        return
    if ahead.measured < fewest_tasks(0.05):
        console.print(
            f"  {ahead.measured} measured tasks x {ahead.trials} trials: with fewer than {fewest_tasks(0.05)} tasks no "
            "difference can be told from noise, however large (5 % level)",
            highlight=False,
        )
        return
    smallest = smallest_detectable_difference(ahead.measured, ahead.trials)
    console.print(
        f"  {ahead.measured} measured tasks x {ahead.trials} trials: a difference below about "
        f"{100 * smallest:.0f} points will not be told from noise (80 % power, 5 % level)",
        highlight=False,
    )


def _early_ends(config: RunConfig, ahead: Forecast) -> Iterator[str]:
    """Caps below the forecast."""
    caps = config.budget
    tokens = sum((role.prompt_tokens or 0) + (role.completion_tokens or 0) for role in ahead.roles)
    known = sum(role.usd for role in ahead.roles if role.usd is not None)
    if caps.max_rollouts and ahead.total > caps.max_rollouts:
        yield f"{ahead.total:,} rollouts are above --max-rollouts {caps.max_rollouts:,}"
    if caps.max_tokens and tokens > caps.max_tokens:
        yield f"about {tokens / 1e6:,.1f} M tokens are above --max-tokens {caps.max_tokens:,}"
    if caps.max_cost and known > caps.max_cost:
        yield f"about {known:.2f} USD in all: above --max-cost {caps.max_cost:g}"
