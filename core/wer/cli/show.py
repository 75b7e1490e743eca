"""``wer show``: a run's refined skills, their diff to the seed, the table, and where each line came from."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from wer import folders
from wer.cli.options import Runs, run_folder
from wer.reports.reporting import print_report
from wer.reports.showing import published, whole
from wer.store import Store


def show(
    run: str | None = None,
    *,
    trajectories: bool = False,
    runs: Runs = Path("runs"),
) -> None:
    """Show a run's refined skills, what changed in them, and the matched pair behind each changed line.

    Args:
        run: Run id or folder. Default: the newest.
        trajectories: Print the pairs' call sequences in full.
    """
    folder = run_folder(runs, run)
    config = folders.configuration(folder)
    store = Store(folder / "wer.sqlite", read_only=True)
    console = Console(highlight=False)
    try:
        found = published(store)
        if not found:
            console.print("this run has no skills yet", markup=False)
        for domain, skills in found.items():
            for piece in whole(store, domain, skills, trajectories=trajectories):
                console.print(piece, soft_wrap=isinstance(piece, Text))
        print_report(console, store, folder, config)
    finally:
        store.close()
