"""``wer plugin``: what is installed, whether it is right, and how a new one begins."""

from __future__ import annotations

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wer import plugins
from wer.cli.checking import check
from wer.cli.scaffolding import new

app = App(name="plugin", help="Parts that are installed: environments, verifiers, executors, optimizers, ...")

app.command(check, name="check")
app.command(new, name="new")


@app.command(name="list")
def list_() -> None:
    """List every installed part, and every plugin that could not be loaded, with the reason."""
    found = plugins.load()
    table = Table()
    for heading in ("kind", "name", "plugin", "distribution", "status"):
        table.add_column(heading)
    for row in found.listing():
        table.add_row(*map(escape, (row.kind, row.name, row.plugin, row.distribution, row.status)))
    Console().print(table)
