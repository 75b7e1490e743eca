"""The command line: parses, opens, calls the loop, prints. Nothing is decided here."""

from __future__ import annotations

import os
import sys

from cyclopts import App
from rich.console import Console

from wer.errors import WerError

app = App(
    name="wer",
    help="""Write, Execute, Refine: make the written skill of a tool-using agent better, from verified execution.

    Try `wer run --env bfcl --backend grpo --preset cpu` for the whole loop on this machine, without a key or a GPU,
    and `wer doctor` when something is missing.""",
    help_format="markdown",
    version_flags=["--version"],
)

for name, module in {
    "run": "wer.cli.run:run",
    "refine": "wer.cli.refine:refine",
    "eval": "wer.cli.evaluate:evaluate",
    "merge": "wer.cli.merge:merge",
    "show": "wer.cli.show:show",
    "verify": "wer.cli.verify:verify",
    "export": "wer.cli.export:export",
    "plugin": "wer.cli.plugin:app",
    "models": "wer.cli.models:app",
    "doctor": "wer.cli.doctor:doctor",
}.items():
    app.command(module, name=name)


def main() -> None:
    """Run the command; a `WerError` is a message and exit status 2, Ctrl-C is 130."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        app()
    except WerError as error:
        console.print(f"wer: {error}", style="red", markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        console.print("wer: interrupted", markup=False)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
