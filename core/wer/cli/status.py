"""``wer status``: what a run has done so far, from another terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from wer import folders
from wer.cli.options import Runs
from wer.records import Usage
from wer.reports import costs
from wer.reports.faults import faults_line
from wer.store import Store


def status(run: str | None = None, *, runs: Runs = Path("runs")) -> None:
    """Say whether a run is at work, in which stage, and what it has spent; nothing is changed.

    Args:
        run: Run id or folder. Default: the newest.
    """
    folder = folders.find(runs, run)
    folders.demand_store(folder)
    store = Store(folder / "wer.sqlite", read_only=True)
    try:
        for line in _lines(folder, store):
            Console(highlight=False, soft_wrap=True).print(line, markup=False)
    finally:
        store.close()


def _lines(folder: Path, store: Store) -> Iterator[str]:
    config = folders.configuration(folder)
    at_work = folders.holder(folder)
    measured = {condition for condition, *_ in store.results()}
    if at_work is not None:
        yield f"{folder}: at work, process {at_work}"
    elif measured:
        yield f"{folder}: ended, with results"
    else:
        yield f"{folder}: ended early; what is finished is stored"
    times = store.times()
    if times:
        stage, seconds = list(times.items())[-1]
        yield f"stage: {stage} ({seconds:.0f} s); {sum(times.values()) / 60:.1f} minutes in all"
    spent = store.spend()
    total = sum(spent.values(), Usage())
    caps = config.budget
    rollouts = f"{store.count_rollouts()} rollouts{_of(caps.max_rollouts)}"
    yield f"{rollouts}, {costs.tokens(total)} tokens{_of(caps.max_tokens)}"
    faults = faults_line(store)
    if faults:
        yield f"faults, each tried again: {faults}"
    for role, usage in sorted(spent.items()):
        usd = "" if usage.usd is None else f", {usage.usd:.2f} USD"
        yield f"  {role}: {costs.count(usage.calls, usage)} calls, {costs.tokens(usage)} tokens{usd}"


def _of(cap: int) -> str:
    return f" of at most {cap:,}" if cap else ""
