"""The few calls into the kernel that Python has no words for, by ctypes."""

from __future__ import annotations

import ctypes
import os
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: Any) -> int:
    """Make one system call.

    Raises:
        OSError: The kernel refused.
    """
    ctypes.set_errno(0)
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def prctl(option: int, *arguments: Any) -> None:
    """Change one property of this process.

    Raises:
        OSError: The kernel refused, or this system has no ``prctl``.
    """
    padded = [*arguments, 0, 0, 0, 0][:4]
    words = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in padded]
    ctypes.set_errno(0)
    try:
        result = _libc.prctl(ctypes.c_int(option), *words)
    except AttributeError:
        raise OSError("this system has no prctl") from None
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
