"""``wer verify``: judge a run's stored rollouts again."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from wer import plugins
from wer.cli.options import Runs, VerifierName, run_folder
from wer.reports.replay import rejudge
from wer.store import Store


def verify(run: str | None = None, *, verifier: VerifierName = None, runs: Runs = Path("runs")) -> None:
    """Judge every stored rollout of a run again, without a sandbox or a model, and compare.

    Exit status 1 when a verdict differs. With `--verifier bfcl_final_state` it shows how many
    rollouts another verifier sees differently.

    Args:
        run: Run id or folder. Default: the newest.
    """
    folder = run_folder(runs, run)
    store = Store(folder / "wer.sqlite", read_only=True)
    console = Console(highlight=False)
    try:
        again = list(rejudge(store, plugins.load(), verifier=verifier or ""))
    finally:
        store.close()
    differing = [found for found in again if not found.agrees]
    for found in differing[:20]:
        before, now = found.rollout.verdict, found.now
        console.print(
            f"{found.rollout.task_id} seed {found.rollout.seed}: was {before.passed} ({before.score:g}), "
            f"{found.verifier} says {now.passed} ({now.score:g})",
            markup=False,
        )
    console.print(
        f"{folder.name}: {len(again)} rollouts judged again, {len(differing)} verdicts differ", markup=False
    )
    if differing:
        sys.exit(1)
