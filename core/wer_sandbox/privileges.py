"""Giving up root: an episode of a worker that runs as root becomes nobody."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from wer_sandbox.kernel import PR_SET_KEEPCAPS, prctl, syscall

NOBODY = 65534

_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION_3 = 0x20080522
_DAC_READ_SEARCH = 1 << 2


def drop(readable: Iterable[str], *, fenced: bool) -> None:
    """Become uid and gid 65534 without capabilities.

    An interpreter under a closed home folder (``/root/.pyenv``) could then no longer
    import a module. Only in that case, and only when Landlock fences off all other
    files, the capability to read is kept.

    Args:
        readable: Folders that must stay readable.
        fenced: True when Landlock is in force.

    Raises:
        OSError: The kernel refused, as in a user namespace that has no uid 65534.
    """
    prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    closed = not all(os.access(path, os.R_OK) for path in readable)
    _keep(_DAC_READ_SEARCH if closed and fenced else 0)


def _keep(capabilities: int) -> None:
    header = struct.pack("Ii", _VERSION_3, 0)
    sets = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
    syscall(_CAPSET[os.uname().machine], ctypes.c_char_p(header), ctypes.c_char_p(sets))
