"""``wer models``: the catalogue of local models."""

from __future__ import annotations

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from wer import catalogue

app = App(name="models", help="Local models with pinned checksums, for runs without a key or a GPU.")


@app.command(name="list")
def list_() -> None:
    """List the models that WER can download, with size, licence, and whether they are here."""
    table = Table()
    for heading in ("name", "size", "licence", "here"):
        table.add_column(heading)
    for entry in catalogue.listing():
        here = "yes" if entry.path else "no"
        table.add_row(f"local/{entry.name}", f"{entry.bytes / 1e6:,.0f} MB", entry.licence, here)
    Console().print(table)


@app.command
def pull(name: str) -> None:
    """Download a model, check it against its SHA-256, and print where it is.

    Args:
        name: A name that `wer models list` shows.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("")

        def show(source: str, done: int, total: int) -> None:
            progress.update(line, description=escape(source), completed=done, total=total)

        path = catalogue.pull(name.removeprefix("local/"), show)
    Console(soft_wrap=True).print(str(path), markup=False)
