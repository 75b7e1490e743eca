"""Finds and ends the processes of a launch, by a mark that all of them inherit in their environment.

Ray starts its servers and workers in sessions of their own, so that a process group does not hold
them all, and a killed driver leaves some behind.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wer.errors import OptimizerError

MARK = "WER_OPENRLHF_LAUNCH"
_PATIENCE_S = 10.0
_TIED = Path(__file__).with_name("tied.py")


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


def tied(command: Sequence[str]) -> list[str]:
    """Give the command that runs another one, which is asked to end when this process is killed.

    Raises:
        OptimizerError: There is no such program.
    """
    if shutil.which(command[0]) is None:
        raise OptimizerError(
            f"cannot start {command[0]!r}: there is no such program. Set optimizer.openrlhf.python to the Python "
            "that has OpenRLHF."
        )
    return [sys.executable, "-I", "-S", str(_TIED), str(os.getpid()), *command]


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
