"""seccomp: a filter in the kernel that refuses the system calls an episode has no business with.

The program is classic BPF (Documentation/userspace-api/seccomp_filter.rst) over
``struct seccomp_data``: number at 0, architecture at 4, six 64-bit arguments from 16.
Needs no privilege, and stays for good.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from wer_sandbox import syscalls
from wer_sandbox.kernel import PR_SET_PDEATHSIG, PR_SET_SECCOMP, prctl

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST = 0x15, 0x35
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_UNKNOWN = 0x00050000 | errno.ENOSYS

# Ways to have the kernel signal another process: F_SETOWN, F_SETSIG, F_SETOWN_EX;
# FIOSETOWN, SIOCSPGRP; and pushing input into a terminal, TIOCSTI.
_FCNTL_COMMANDS = (8, 10, 15)
_CLONE_THREAD = 0x10000
_IOCTL_REQUESTS = (0x8901, 0x8902, 0x5412)
_OPEN_TO_WRITE = 0o3 | 0o100 | 0o1000


def supported() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine() in _MACHINES


class _Program:
    def __init__(self, column: int) -> None:
        self.column = column
        self.instructions: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self.instructions.append((code, yes, no, value))

    def refuse(self, number: int | None) -> None:
        if number is not None:
            self.add(_EQUAL, number, 0, 1)
            self.add(_RETURN, _REFUSE)

    def refuse_values(
        self, call: tuple[int | None, int | None], argument: int, values: tuple[int, ...]
    ) -> None:
        """Refuse a call when the low half of an argument is one of these."""
        number = call[self.column]
        assert number is not None
        self.add(_EQUAL, number, 0, 2 + 2 * len(values))
        self.add(_LOAD, 16 + 8 * argument)
        for value in values:
            self.refuse(value)
        self.add(_RETURN, _ALLOW)

    def refuse_bits(self, call: tuple[int | None, int | None], argument: int, mask: int) -> None:
        """Refuse a call when an argument has any of these bits."""
        number = call[self.column]
        if number is not None:
            self.add(_EQUAL, number, 0, 5)
            self.add(_LOAD, 16 + 8 * argument)
            self.add(_AND, mask)
            self.add(_EQUAL, 0, 0, 1)
            self.add(_RETURN, _ALLOW)
            self.add(_RETURN, _REFUSE)

    def require_bits(self, call: tuple[int | None, int | None], argument: int, mask: int) -> None:
        """Refuse a call when an argument has none of these bits."""
        number = call[self.column]
        assert number is not None
        self.add(_EQUAL, number, 0, 5)
        self.add(_LOAD, 16 + 8 * argument)
        self.add(_AND, mask)
        self.add(_EQUAL, 0, 1, 0)
        self.add(_RETURN, _ALLOW)
        self.add(_RETURN, _REFUSE)

    def only_zero(self, call: tuple[int | None, int | None], argument: int) -> None:
        """Refuse a call unless an argument is 0."""
        self.refuse_bits(call, argument, 0xFFFFFFFF)


def _instructions(read_only: bool, companion: bool) -> list[tuple[int, int, int, int]]:
    column, architecture = _MACHINES[platform.machine()]
    program = _Program(column)
    program.add(_LOAD, 4)
    program.add(_EQUAL, architecture, 1, 0)
    program.add(_RETURN, _KILL)
    program.add(_LOAD, 0)
    for number in syscalls.HARMLESS.values():
        program.add(_EQUAL, number, 0, 1)
        program.add(_RETURN, _ALLOW)
    program.add(_AT_LEAST, syscalls.FIRST_COMMON, 0, 1)  # x86's x32 calls lie there too
    program.add(_RETURN, _UNKNOWN)
    if companion:
        program.require_bits(syscalls.CLONE, 0, _CLONE_THREAD)
        program.refuse_values(syscalls.PRCTL, 0, (PR_SET_PDEATHSIG,))
    for name, numbers in syscalls.DENIED.items():
        if not (companion and name in syscalls.COMPANION_MAY):
            program.refuse(numbers[column])
    program.refuse_values(syscalls.FCNTL, 1, _FCNTL_COMMANDS)
    program.refuse_values(syscalls.IOCTL, 1, _IOCTL_REQUESTS)
    program.only_zero(syscalls.PRLIMIT, 0)
    if read_only:
        program.refuse_bits(syscalls.OPEN, 1, _OPEN_TO_WRITE)
        program.refuse_bits(syscalls.OPENAT, 2, _OPEN_TO_WRITE)
    program.add(_RETURN, _ALLOW)
    return program.instructions


def assemble(*, read_only: bool, companion: bool = False) -> bytes:
    """Write the filter for this machine.

    Args:
        read_only: Also refuse to open any file for writing, for kernels without Landlock.
        companion: Allow threads and changes to files, and keep it from surviving its episode.
    """
    instructions = _instructions(read_only, companion)
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def restrict(code: bytes) -> None:
    """Install a filter. Needs ``no_new_privs``.

    Raises:
        OSError: The kernel refused.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(program))
