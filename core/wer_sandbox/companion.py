"""The program beside an episode: a second child, for domains whose tools are a program with files.

A domain of a spec with ``disk_bytes`` has two methods more. ``accompany()`` runs in the
companion, and is its whole life: its standard input and output are one end of a socket. In the
episode itself, ``meet(companion)`` gets the other end. The companion is forked, and not
started anew, so that it shares what the worker has imported; it is a single process that can
start threads and no other process, so that nothing of it is left when the kernel ends it
together with the episode.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from wer_sandbox.confine import Confinement
from wer_sandbox.privileges import NOBODY


class Companion:
    """The program as its episode knows it.

    Attributes:
        line: Connected to the standard input and output of the program.
        folder: Its own, which the episode can read.
        disk_bytes: How much all its files together should have at most. The kernel holds only
            each single file to it: the domain has to look.
    """

    def __init__(self, line: socket.socket, pid: int, folder: str, disk_bytes: int) -> None:
        self.line = line
        self.folder = folder
        self.disk_bytes = disk_bytes
        self._pid = pid

    def used_bytes(self) -> int:
        """The size of all files in its folder; far too much where they lie deeper than can be looked."""
        sizes = 0
        try:
            for folder, _, names in os.walk(self.folder):
                sizes += sum(os.lstat(Path(folder, name)).st_size for name in names)
        except (OSError, RecursionError):
            return sys.maxsize
        return sizes

    def cpu_s(self) -> float:
        """CPU seconds that it has used; it must not have been waited for.

        The clock's number is ``MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)`` of the kernel's
        ``include/linux/posix-timers_types.h``.
        """
        return time.clock_gettime((~self._pid << 3) | 2)

    def ended(self) -> int | None:
        """How a program that hung up ended, as `os.wait` puts it; None when it still lives two seconds later."""
        for _ in range(40):
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.05)
        return None


def make_folder(place: Path) -> str:
    """Make a folder for one companion; in the temporary folder when `place` can't be written to."""
    if os.access(place, os.W_OK):
        place.chmod(0o711)  # the companion of a worker that runs as root is another user
    else:
        place = Path(tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix="episode-", dir=place)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def remove_folder(folder: str) -> None:
    """Remove what a companion left; what lies too deep goes with the worker's other files."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)


def start(domain: Any, confinement: Confinement, folder: str, *, disk_bytes: int, memory_bytes: int) -> None:
    """Fork the companion, from an episode that has not confined itself yet."""
    mine, its = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _be(domain, confinement, its, folder, disk_bytes=disk_bytes, memory_bytes=memory_bytes)
    its.close()
    domain.meet(Companion(mine, pid, folder, disk_bytes))


def _be(
    domain: Any,
    confinement: Confinement,
    line: socket.socket,
    folder: str,
    *,
    disk_bytes: int,
    memory_bytes: int,
) -> None:
    status = 1
    try:
        _sit_down(line, folder)
        confinement.apply(memory_bytes, folder=folder, disk_bytes=disk_bytes)
        domain.accompany()
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if not isinstance(leaving.code, (int, type(None))):
            sys.stderr.write(f"{leaving.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the program may have closed it
                stream.flush()
        os._exit(status & 0xFF)


def _sit_down(line: socket.socket, folder: str) -> None:
    """Take the line as standard input and output, and the folder as home; close the episode's own files."""
    for stream in (0, 1):
        os.dup2(line.fileno(), stream)
    line.detach()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the program's for its life
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder)
    tempfile.tempdir = None
