"""Which parts a name stands for, and all of their checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from attrs import evolve

from wer.conformance.checks import Finding, Kind, Settings, run_checks
from wer.conformance.environments import ENVIRONMENTS
from wer.conformance.executors import EXECUTORS
from wer.conformance.models import MODELS
from wer.conformance.optimizers import OPTIMIZERS
from wer.conformance.sandboxes import SANDBOXES
from wer.conformance.verifiers import VERIFIERS
from wer.errors import PluginError, WerError
from wer.plugins import Plugins, Row
from wer.references import is_reference, short
from wer.tables import nearest

KINDS: Mapping[str, Kind[Any]] = {
    "environment": ENVIRONMENTS,
    "verifier": VERIFIERS,
    "executor": EXECUTORS,
    "optimizer": OPTIMIZERS,
    "model": MODELS,
    "sandbox": SANDBOXES,
}
"""The kinds of parts that there are checks for; policies, runners and trackers have none."""


async def check_name(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Finding]:
    """Check a part, or all parts of a plugin or an installed package, and the verifier of each environment.

    Raises:
        PluginError: Nothing is called so.
    """
    if is_reference(name):
        rows: list[Row] = [Row(plugin="", distribution="", kind="environment", name=name)]
    else:
        rows = _rows(name, plugins)
    audited: set[str] = set()
    for row in rows:
        for finding in await _check_row(row, plugins, settings, audited):
            yield finding


def _rows(name: str, plugins: Plugins) -> list[Row]:
    listing = plugins.listing()
    rows = [row for row in listing if name in (row.name, row.plugin, row.distribution.partition(" ")[0])]
    if not rows:
        known = {row.name for row in listing} | {row.plugin for row in listing}
        raise PluginError(
            f"nothing is called {name!r}{nearest(name, known) or '.'} Give the name of a part, a plugin or an "
            "installed package, as wer plugin list shows them."
        )
    return rows


async def _check_row(row: Row, plugins: Plugins, settings: Settings, audited: set[str]) -> list[Finding]:
    if row.status != "ok":
        return [
            Finding(
                part=f"plugin {row.plugin}",
                sentence="it can be loaded",
                status="failed",
                detail=row.status.removeprefix("broken: "),
                remedy="Mend the import or the hook that is named; install the library, or declare it as a dependency.",
            )
        ]
    if row.kind not in KINDS:
        why = "WER has no checks for this kind"
        return [Finding(part=f"{row.kind} {row.name}", sentence="", status="not applicable", detail=why)]
    if row.kind == "verifier":
        return await _check_verifier(row.name, plugins, settings, audited)
    findings = await check_part(row.kind, row.name, plugins, settings)
    if row.kind == "environment":
        findings += await _audit(row.name, plugins, settings, audited)
    return findings


async def check_part(kind: str, name: str, plugins: Plugins, settings: Settings) -> list[Finding]:
    """Hold every check of one kind against one part."""
    on = f" on {settings.environment}" if kind == "verifier" else ""
    return await run_checks(f"{kind} {name}{on}", KINDS[kind], name, plugins, settings)


async def _audit(name: str, plugins: Plugins, settings: Settings, audited: set[str]) -> list[Finding]:
    """Check the verifier that an environment names, on its tasks."""
    try:
        verifier = (
            settings.verifier
            or plugins.environments.make(name, settings.table("environment", short(name))).verifier()
        )
    except WerError:
        return []  # the environment's own findings tell it
    if name in audited:
        return []
    audited.add(name)
    return await check_part("verifier", verifier, plugins, evolve(settings, environment=name))


async def _check_verifier(
    name: str, plugins: Plugins, settings: Settings, audited: set[str]
) -> list[Finding]:
    """Check a verifier on the tasks of the given environment, or of those that name it as their own."""
    environments = [settings.environment] if settings.environment else _judged_by(name, plugins, settings)
    if not environments:
        why = "no installed environment names it as its own; give one with --env"
        return [Finding(part=f"verifier {name}", sentence="", status="not applicable", detail=why)]
    found: list[Finding] = []
    for environment in environments:
        found += await _audit(environment, plugins, evolve(settings, verifier=name), audited)
    return found


def _judged_by(verifier: str, plugins: Plugins, settings: Settings) -> list[str]:
    found = []
    for name in plugins.environments.names():
        try:
            environment = plugins.environments.make(name, settings.table("environment", name))
        except WerError:
            continue  # another plugin's fault, which its own check tells
        if environment.verifier() == verifier:
            found.append(name)
    return found
