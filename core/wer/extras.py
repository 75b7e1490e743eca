"""Optional libraries: which extra of an installed distribution brings a module that is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+).*extra == ['\"](?P<extra>[A-Za-z0-9._-]+)['\"]")


def extras(distribution: str = "wer-skills") -> dict[str, tuple[str, ...]]:
    """Map each extra of a distribution to those of its requirements that are not installed."""
    found: dict[str, list[str]] = {}
    for requirement, extra in _optional(distribution):
        missing = found.setdefault(extra, [])
        if not _installed(requirement):
            missing.append(requirement)
    return {extra: tuple(missing) for extra, missing in sorted(found.items())}


def remedy(module: str, distribution: str) -> str:
    """Say what to install when a module of a plugin's distribution cannot be imported."""
    top = module.partition(".")[0].replace("_", "-").lower()
    optional = list(_optional(distribution))
    offering = [extra for requirement, extra in optional if requirement.lower().replace("_", "-") == top]
    if not offering:
        return f"Install the library that provides {module!r}."
    smallest = min(offering, key=lambda extra: sum(other == extra for _, other in optional))
    return f"Install it with pip install '{distribution}[{smallest}]'."


def _optional(distribution: str) -> Iterator[tuple[str, str]]:
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return
    for line in requirements:
        if match := _REQUIREMENT.match(line):
            yield match["name"], match["extra"]


def _installed(requirement: str) -> bool:
    if requirement == "wer-skills":  # an extra made of other extras
        return True
    try:
        metadata.distribution(requirement)
    except metadata.PackageNotFoundError:
        return False
    return True
