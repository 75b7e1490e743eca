"""Who owns what was left on the machine, so that only the dead are cleaned up after."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import asdict, frozen

_PROC = Path("/proc")
_ENDED = "ended"


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
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """A process of this machine that is there now."""
        return cls(boot=_boot(), space=_space(), pid=str(pid), start=_start(str(pid)))

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Owner:
        """Read what `write` gave; missing words are ""."""
        return cls(**{word: str(data.get(word, "")) for word in ("boot", "space", "pid", "start")})

    def write(self) -> dict[str, str]:
        """As labels."""
        return asdict(self)

    @property
    def alive(self) -> bool:
        """True only when it is certain that the process is there."""
        return self.space == _space() and self.boot == _boot() and self.start == _start(self.pid) != ""

    @property
    def dead(self) -> bool:
        """True only when it is certain that the process has ended."""
        if not self.pid.isdigit():
            return False
        if self.boot != _boot():
            return True
        now = _start(self.pid)
        return self.space == _space() and (now == _ENDED or now != self.start)


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
        words = (_PROC / pid / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if _exists(int(pid)) else _ENDED
    return _ENDED if words[0] in "ZX" else words[19]  # a zombie waits for a parent that may never ask


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
