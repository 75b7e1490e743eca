"""Finds and ends the processes of a launch, by a mark that all of them inherit in their environment.

Ray starts its servers and workers in sessions of their own, so that a process group does not hold
them all, and a killed driver leaves some behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MARK = "WER_OPENRLHF_LAUNCH"
_PATIENCE_S = 10.0


def marked(mark: str) -> list[int]:
    """Find this user's live processes whose environment has the mark."""
    wanted = f"{MARK}={mark}".encode()
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and int(folder.name) != os.getpid() and wanted in _environment(folder)
    ]


async def end(mark: str) -> int:
    """End all processes of a launch: asked to, then made to. Give how many there were."""
    found = marked(mark)
    _signal(found, signal.SIGTERM)
    for _ in range(int(_PATIENCE_S / 0.1)):
        if not marked(mark):
            return len(found)
        await asyncio.sleep(0.1)
    while left := marked(mark):
        _signal(left, signal.SIGKILL)
        await asyncio.sleep(0.1)
    return len(found)


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
