"""What works on this machine: one finding a thing, each with its remedy."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from attrs import frozen

from wer import catalogue, plugins
from wer.errors import ConfigError, PluginError
from wer.extras import extras
from wer.paths import cache_dir

_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "WER_API_KEY")
_GIB = 1 << 30


@frozen(kw_only=True)
class Finding:
    """One line of ``wer doctor``.

    Attributes:
        status: ``fail`` only for what every run needs.
        detail: What was found; never a secret's value.
        remedy: What to do about it; empty when nothing is to be done.
    """

    what: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def check() -> tuple[Finding, ...]:
    """Look at everything that a run may need. Imports no heavy library and calls no model."""
    try:
        found = plugins.load()
    except PluginError as error:
        broken = Finding(what="plugins", status="fail", detail=str(error), remedy="Uninstall the plugin.")
        return (_python(), broken, *_disks(), _gpu(), _keys(), *_models(), *_extras())
    return (
        _python(),
        *_sandboxes(found),
        _bubblewrap(),
        *_programs(found),
        _gpu(),
        *_disks(),
        _keys(),
        *_models(),
        *_extras(),
        *_plugins(found),
    )


def _python() -> Finding:
    version = platform.python_version()
    return Finding(
        what="python", status="ok", detail=f"{version} on {platform.system()} {platform.machine()}"
    )


def _sandboxes(found: plugins.Plugins) -> Iterator[Finding]:
    """One usable sandbox is enough; without any, nothing can run."""
    reasons: dict[str, str | None] = {}
    for name in found.sandboxes.names():
        try:
            reasons[name] = found.sandboxes.make(name).unavailable()
        except PluginError as error:
            reasons[name] = str(error)
    usable = [name for name, reason in reasons.items() if reason is None]
    for name, reason in reasons.items():
        if reason is None:
            yield Finding(what=f"sandbox {name}", status="ok", detail="usable")
        else:
            remedy = f"Or use --sandbox {usable[0]}." if usable else "At least one sandbox must work."
            yield Finding(
                what=f"sandbox {name}", status="warn" if usable else "fail", detail=reason, remedy=remedy
            )
    if not reasons:
        yield Finding(
            what="sandbox", status="fail", detail="no sandbox plugin loaded", remedy="See wer plugin list."
        )


def _bubblewrap() -> Finding:
    if path := shutil.which("bwrap"):
        return Finding(what="bubblewrap", status="ok", detail=path)
    return Finding(
        what="bubblewrap",
        status="warn",
        detail="bwrap not found: the process sandbox confines itself without it",
        remedy="Install the package bubblewrap for stronger isolation.",
    )


def _programs(found: plugins.Plugins) -> Iterator[Finding]:
    """Programs that a provider of models needs beside its plugin; no run needs all of them."""
    for name in found.models.names():
        provider = found.provider(name)
        try:
            detail = provider.program() if provider else ""
        except ConfigError as error:
            missing, _, remedy = str(error).partition(". ")
            yield Finding(what=name, status="warn", detail=missing, remedy=remedy)
        else:
            if detail:
                yield Finding(what=name, status="ok", detail=detail)


def _gpu() -> Finding:
    """Ask ``nvidia-smi``; torch is not imported for this."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return Finding(what="gpu", status="ok", detail="none found; the presets cpu and cpu-long need none")
    command = [path, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(
            what="gpu", status="warn", detail=f"nvidia-smi failed: {error}", remedy="Check the NVIDIA driver."
        )
    return Finding(what="gpu", status="ok", detail="; ".join(answer.split("\n")).strip("; "))


def _disks() -> Iterator[Finding]:
    for what, folder in (("disk of the cache", cache_dir()), ("disk of this folder", Path.cwd())):
        free = shutil.disk_usage(folder).free / _GIB
        detail = f"{free:.1f} GiB free at {folder}"
        if free < 1:
            yield Finding(what=what, status="fail", detail=detail, remedy="Free at least 1 GiB.")
        elif free < 5:
            yield Finding(what=what, status="warn", detail=detail, remedy="A model and a run want 5 GiB.")
        else:
            yield Finding(what=what, status="ok", detail=detail)


def _keys() -> Finding:
    present = [name for name in _KEYS if os.environ.get(name)]
    if present:
        return Finding(what="API keys", status="ok", detail=f"set: {', '.join(present)}")
    return Finding(
        what="API keys",
        status="warn",
        detail="none set",
        remedy="Needed for API models only: export OPENAI_API_KEY=... Local models need none.",
    )


def _models() -> Iterator[Finding]:
    for entry in catalogue.listing():
        if entry.path is not None:
            yield Finding(what=f"model {entry.name}", status="ok", detail=str(entry.path))
        else:
            size = f"{entry.bytes / _GIB:.1f} GiB"
            yield Finding(
                what=f"model {entry.name}",
                status="ok",
                detail=f"not here yet ({size})",
                remedy=f"wer models pull {entry.name}, or let a run fetch it.",
            )


def _extras() -> Iterator[Finding]:
    for extra, missing in extras().items():
        if extra == "dev":
            continue
        if missing:
            detail, remedy = (
                f"missing: {', '.join(missing)}",
                f"pip install 'wer-skills[{extra}]', if you need it.",
            )
            yield Finding(what=f"extra {extra}", status="warn", detail=detail, remedy=remedy)
        else:
            yield Finding(what=f"extra {extra}", status="ok", detail="installed")


def _plugins(found: plugins.Plugins) -> Iterator[Finding]:
    for name, reason in found.broken.items():
        yield Finding(
            what=f"plugin {name}",
            status="warn",
            detail=reason,
            remedy="Repair or uninstall it; the others work.",
        )
    if not found.broken:
        names = {row.plugin for row in found.listing()}
        yield Finding(what="plugins", status="ok", detail=f"{len(names)} loaded")
