"""Prints a forecast: rollouts, calls and tokens a role, and what the test split can show."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wer.configuration import RunConfig
from wer.loop.checking import check_names
from wer.loop.domains import domains, environments
from wer.loop.roles import concurrency
from wer.plugins import Plugins
from wer.reports.forecast import ASSUMPTIONS, Forecast, Plan, forecast
from wer.reports.statistics import smallest_detectable_difference


def foresee(config: RunConfig, plugins: Plugins, plan: Plan | None = None) -> None:
    """Check the configuration as far as it costs nothing, and print what comes.

    Args:
        plan: What the command performs; None is the whole protocol.

    Raises:
        WerError: Something can't be had, before anything is built or paid.
    """
    check_names(config, plugins)
    chosen = domains(config, environments(config, plugins), test_limit=config.evaluation.test_limit)
    print_forecast(Console(), config, forecast(config, chosen, plugins, plan), concurrency(config, plugins))


def print_forecast(console: Console, config: RunConfig, ahead: Forecast, at_once: int) -> None:
    """Print what the run will cost at most, and the smallest difference that it can show."""
    table = Table(
        title="Forecast (an estimate: later phases work on what earlier ones retain)", title_justify="left"
    )
    for heading in ("role", "model", "calls", "prompt tokens", "completion tokens", "USD"):
        table.add_column(heading, justify="left" if heading in ("role", "model") else "right")
    for role in ahead.roles:
        usd = "unknown" if role.usd is None else f"{role.usd:.2f}"
        counts = (f"{count:,}" for count in (role.calls, role.prompt_tokens, role.completion_tokens))
        table.add_row(role.role, escape(role.model), *counts, usd)
    console.print(table)
    for stage, count in ahead.rollouts:
        console.print(f"  {count:6,} rollouts  {stage}", highlight=False)
    console.print(f"  {ahead.total:6,} rollouts in all; {ASSUMPTIONS}", highlight=False)
    known = [role.usd for role in ahead.roles if role.usd is not None]
    cap = config.budget.max_cost
    if cap and sum(known) > cap:
        console.print(
            f"  about {sum(known):.2f} USD in all: above --max-cost {cap:g}, which would stop it early",
            highlight=False,
        )
    console.print(
        f"  about {ahead.minutes(at_once):.0f} minutes of model calls at that pace; "
        "the progress line shows the real one",
        highlight=False,
    )
    if not ahead.measured:
        return
    smallest = smallest_detectable_difference(ahead.measured, ahead.trials)
    console.print(
        f"  {ahead.measured} measured tasks x {ahead.trials} trials: a difference below about "
        f"{100 * smallest:.0f} points will not be told from noise (80 % power, 5 % level)",
        highlight=False,
    )
