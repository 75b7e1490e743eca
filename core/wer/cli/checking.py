"""``wer plugin check``: whether a part does what its contract says, seen before a token is spent."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wer import plugins
from wer.cli.options import Whole
from wer.configuration import assigned_options, read
from wer.conformance import Finding, Settings, check_name
from wer.conformance.checks import UNREACHED
from wer.errors import PluginError

_STYLES = {"ok": "green", "failed": "red", "not applicable": "yellow"}


def check(
    name: str,
    *,
    sandbox: Annotated[str, Parameter(help="As for wer run. Default: the best that works here.")] = "auto",
    env: Annotated[str, Parameter(help="Environment whose tasks a verifier judges.")] = "",
    verifier: Annotated[str, Parameter(help="Verifier of an environment. Default: its own.")] = "",
    model: Annotated[
        str,
        Parameter(
            help="Model to check, provider/name[@url]; or the weights' folder that an optimizer trains."
        ),
    ] = "",
    tasks: Annotated[Whole, Parameter(help="Tasks a domain that episodes are tried on.")] = 3,
    config: Annotated[
        Path | None, Parameter(help="A wer.toml, for the part's table. Default: ./wer.toml when it exists.")
    ] = None,
    set: Annotated[
        list[str] | None,
        Parameter(help="An option of the part: --set mode='step'. Repeat for several.", negative=()),
    ] = None,
) -> None:
    """Check a part, or all parts of a plugin or an installed package, without a model that costs anything.

    For an environment that includes its verifier's audit: references must pass, doing nothing and
    changed references must not. Exit status 1 when a check fails.

    Args:
        name: Of a part, a plugin or a package, as `wer plugin list` shows them; or shop.py:shop.
    """
    default = Path("wer.toml")
    file = config or (default if default.is_file() else None)
    settings = Settings(
        config=read(file) if file else {},
        sandbox=sandbox,
        environment=env,
        verifier=verifier,
        model=model,
        tasks=tasks,
        options=assigned_options(set or ()),
    )
    findings = asyncio.run(_findings(name, settings))
    _print(findings)
    if any(finding.status == "failed" for finding in findings):
        sys.exit(1)


async def _findings(name: str, settings: Settings) -> list[Finding]:
    try:
        found = plugins.load()
    except PluginError as error:
        message, _, remedy = str(error).rpartition(". ")
        return [
            Finding(
                part="plugins",
                sentence="all can be loaded together",
                status="failed",
                detail=message,
                remedy=remedy,
            )
        ]
    findings = []
    with Console(stderr=True).status("") as status:
        async for finding in check_name(name, found, settings):
            status.update(f"{finding.part}: {finding.sentence}")
            findings.append(finding)
    return findings


def _print(findings: list[Finding]) -> None:
    out = Console()
    told = [finding for finding in findings if finding.detail != UNREACHED]
    for part, about in groupby(told, key=lambda finding: finding.part):
        table = Table(title=escape(part), title_justify="left")
        for heading in ("check", "", "found"):
            table.add_column(heading)
        for finding in about:
            style = _STYLES[finding.status]
            found = "\n".join(filter(None, (finding.detail, finding.remedy)))
            table.add_row(escape(finding.sentence), f"[{style}]{finding.status}[/]", escape(found))
        out.print(table)
    counts = Counter(finding.status for finding in told)
    out.print(", ".join(f"{count} {status}" for status, count in counts.items()))
