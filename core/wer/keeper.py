"""Stands between WER and a program of the user's (a model server, an agent), so that it never outlives the run.

Run by path, with the standard library only: ``python -I -S keeper.py GRACE_S COMMAND...``. Its
standard input is a pipe that WER alone holds. When that ends, or WER is gone however it went, the
keeper asks the program to stop, waits for the grace period, and kills every process that the
program has started, even one whose own parent has died. It ends as the program did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 1.0


def main(grace_s: float, command: list[str]) -> int:
    """Keep one program; return its exit status as a shell has it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    driver = os.getppid()
    alarm = _alarm()

    def end_with_keeper() -> None:
        """In the program: be asked to stop if somebody kills the keeper."""
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    try:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=end_with_keeper)
    except OSError as error:
        print(f"cannot start {command[0]}: {error}", file=sys.stderr)
        return 127
    while program.poll() is None and os.getppid() == driver:
        heard, _, _ = select.select([0, alarm], [], [], _LOOK_S)
        if alarm in heard and b"T" in os.read(alarm, 64):
            break
        if 0 in heard and not os.read(0, 64):
            break
    _stop(program, grace_s)
    _end_descendants()
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _alarm() -> int:
    """Give a pipe that can be read from when the program ends (C) or the keeper is asked to stop (T)."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def ring(word: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writing, word)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ring(b"T"))
    signal.signal(signal.SIGCHLD, lambda *_: ring(b"C"))
    return reading


def _stop(program: subprocess.Popen[bytes], grace_s: float) -> None:
    program.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(grace_s)
    program.kill()
    program.wait()


def _end_descendants() -> None:
    """Kill what the program left; orphans have become the keeper's own children, so none is missed."""
    deadline = time.monotonic() + 30.0
    while (left := _descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def _descendants(root: int) -> list[int]:
    """Pids below a process, zombies included until they are waited for."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found: list[int] = []
    ring = [root]
    while ring:
        ring = [pid for pid, parent in parents.items() if parent in ring and pid not in found]
        found += ring
    return found


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
