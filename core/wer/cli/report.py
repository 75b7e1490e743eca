"""``wer report``: a run as one HTML file that can be kept, sent and opened anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer.cli.options import Runs, run_folder
from wer.viewing.bundling import write_file


def report(
    run: str | None = None,
    *,
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"], help="The file, NAME.html. Default: report.html in the run's folder."
        ),
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Write a run into one HTML file: table, curves, skills with their evidence, and the pairs that matter.

    It needs no server and fetches nothing. What was left out is said in it; ``wer view`` has everything.

    Args:
        run: Run id or folder. Default: the newest.
    """
    folder = run_folder(runs, run)
    path = out or folder / "report.html"
    written = write_file(folder, path)
    Console(highlight=False, soft_wrap=True).print(written, markup=False)
