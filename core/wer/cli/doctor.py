"""``wer doctor``: what works here, what doesn't, and what to do about it."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wer.doctor import check


def doctor() -> None:
    """Check Python, sandboxes, GPU, disk, keys, models, extras and plugins; each finding has its remedy.

    Exit status 1 when something that every run needs is missing.
    """
    findings = check()
    table = Table(show_lines=False)
    for heading in ("", "what", "found", "remedy"):
        table.add_column(heading, overflow="fold")
    style = {"ok": "green", "warn": "yellow", "fail": "red"}
    for finding in findings:
        table.add_row(
            f"[{style[finding.status]}]{finding.status}[/]",
            *map(escape, (finding.what, finding.detail, finding.remedy)),
        )
    Console().print(table)
    if any(finding.status == "fail" for finding in findings):
        sys.exit(1)
