"""Who owns what was left on the machine, so that only the dead are cleaned up after."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import asdict, frozen

_PROC = Path("/proc")


@frozen(kw_only=True)
class Owner:
    """A process, named so that a later process with the same pid is another.

    Attributes:
        boot: Id of the machine's boot, or "" where there is none.
        space: Its pid namespace: pids of another one say nothing here.
        start: Clock ticks from boot to its start, or "".
    """

    boot: str
    space: str
    pid: str
    start: str

    @classmethod
    def me(cls) -> Owner:
        """This process."""
        pid = str(os.getpid())
        return cls(boot=_boot(), space=_space(), pid=pid, start=_start(pid))

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Owner:
        """Read what `write` gave; missing words are ""."""
        return cls(**{word: str(data.get(word, "")) for word in ("boot", "space", "pid", "start")})

    def write(self) -> dict[str, str]:
        """As labels."""
        return asdict(self)

    @property
    def dead(self) -> bool:
        """True only when it is certain that the process has ended."""
        if not self.pid.isdigit():
            return False
        if self.boot != _boot():
            return True
        return self.space == _space() and _start(self.pid) != self.start


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _space() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _start(pid: str) -> str:
    try:
        return (_PROC / pid / "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "" if _exists(int(pid)) else "ended"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
