"""Landlock: no file but the interpreter's and the domain's can be opened, and none be written.

The kernel's documentation: Documentation/userspace-api/landlock.rst. Needs no privilege,
Linux 5.13 upwards.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from wer_sandbox.kernel import syscall

# The numbers are the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446

WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Read, write, remove, make folders, files and symbolic links, move and truncate; run nothing.
_OWN = sum(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 12, 13, 14))
# How many kinds of access the file system rules know, by version of the interface.
_KINDS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def version() -> int:
    """Which Landlock this kernel has; 0 when it has none or it is switched off."""
    try:
        return syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def rules(readable: Iterable[str], writable: Iterable[str], own: Iterable[str] = ()) -> int:
    """Write down which folders and files are left, for `restrict`; give the file that stands for it.

    In its own folders a process may also make, change and remove files. Where the kernel can, also
    forbid TCP (version 4) and abstract sockets and signals to processes outside (version 6).

    Raises:
        OSError: The kernel refused.
    """
    known = version()
    everything = (1 << _KINDS.get(known, 16)) - 1
    ruleset = _ruleset(known, everything)
    try:
        for path in readable:
            _allow(ruleset, path, READ_FILE | READ_DIR)
        for path in writable:
            _allow(ruleset, path, READ_FILE | WRITE_FILE)
        for path in own:
            _allow(ruleset, path, _OWN & everything)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def restrict(ruleset: int) -> None:
    """Leave this process only what `rules` wrote down, and close that file. Needs ``no_new_privs``.

    Raises:
        OSError: The kernel refused.
    """
    try:
        syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _ruleset(known: int, everything: int) -> int:
    network, scope = 0b11, 0b11
    attributes = struct.pack("QQQ", everything, network, scope)
    size = 8 if known < 4 else 16 if known < 6 else 24
    return syscall(CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0))


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not Path(path).is_dir():
            access &= ~READ_DIR
        rule = struct.pack("=Qi", access, beneath)
        syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    finally:
        os.close(beneath)
