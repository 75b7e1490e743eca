"""Becomes another program that the kernel asks to end when the process that started it dies.

Run by path, with the standard library only: ``python -I -S tied.py DRIVER_PID COMMAND...``. A trainer
that waits for GPUs would otherwise outlive a killed driver, and hold what it has.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(driver: int, command: list[str]) -> None:
    """Tie this process to its driver, and become the command."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != driver:
        sys.exit("the program that started this one has ended")
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
