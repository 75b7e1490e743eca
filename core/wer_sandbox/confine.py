"""Confinement of an episode and its companion, applied by each right after the fork and before any request.

The layers are independent, and each that this machine has is applied. The answer says
which, so that a report never claims more isolation than there was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
import sysconfig
from pathlib import Path

from wer_sandbox import landlock, privileges, seccomp
from wer_sandbox.kernel import PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, prctl

COMPANION_CPU_S = 120
"""CPU seconds of a companion in a whole episode, after which the kernel ends it whoever waits for it."""

_OPEN_FILES = 64
# What a C extension that is imported late may need to find its libraries.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/etc/localtime")
_DEVICES = ("/dev/urandom", "/dev/random", "/dev/zero")
_NULL = ("/dev/null",)


class Confinement:
    """What an episode gives up, for good. Prepared once in the worker, applied in each child.

    Attributes:
        readable: The only folders and devices that an episode can open, where there is Landlock.
        rules: The open file that says so, made here because it costs more than the fork; -1 without
            Landlock. Each child inherits it, and closes it when it is confined.
    """

    def __init__(self) -> None:
        self.readable = _readable()
        self._landlock = landlock.version()
        self.rules = _out_of_the_way(landlock.rules(self.readable, _NULL)) if self._landlock else -1
        self._filter = seccomp.assemble(read_only=not self._landlock) if seccomp.supported() else b""

    def require_companions(self) -> None:
        """Refuse to start a program that writes files where nothing would keep it to its folder.

        Raises:
            OSError: This machine has no Landlock or no seccomp.
        """
        if not (self._landlock and self._filter):
            raise OSError(
                "a program beside an episode may write files, and is kept to its folder by Landlock and "
                "seccomp: it needs Linux 5.13 or newer, with Landlock switched on, on x86_64 or aarch64"
            )

    def apply(self, memory_bytes: int, *, folder: str = "", disk_bytes: int = 0) -> list[str]:
        """Give up whatever an episode does not need; return the layers in force.

        Args:
            memory_bytes: How much address space may be added to what is there already.
            folder: The companion's, which is readable too.
            disk_bytes: When not 0, this is the companion: it may write files of up to this size
                in its folder and start threads, and has only `COMPANION_CPU_S`.
        """
        parent = os.getppid()
        layers = ["resource limits"]
        readable = [*self.readable, *filter(None, [folder])]
        _sacrifice_first()
        _limit(memory_bytes, disk_bytes)
        with contextlib.suppress(OSError):
            prctl(PR_SET_NO_NEW_PRIVS, 1)
            layers.append("no new privileges")
        if self._landlock:
            own = landlock.rules(readable, _NULL, [folder] if disk_bytes else ()) if folder else self.rules
            landlock.restrict(own)
            layers.append(f"landlock {self._landlock}")
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                privileges.drop(readable, fenced=self._landlock > 0)
                layers.append(f"uid {privileges.NOBODY}")
        with contextlib.suppress(OSError):
            die_with_parent(parent)
        if disk_bytes:
            seccomp.restrict(seccomp.assemble(read_only=False, companion=True))
            return layers
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # after the change of uid, which it would forbid
        if self._filter:
            with contextlib.suppress(OSError):
                seccomp.restrict(self._filter)
                layers.append("seccomp")
        return layers


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, even if it was never told to clean up.

    Args:
        parent: Its pid as this process sees it; when it is gone already, leave now.

    Raises:
        OSError: This system cannot.
    """
    prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _readable() -> list[str]:
    interpreter = [sysconfig.get_path("stdlib"), sysconfig.get_config_var("LIBDIR") or ""]
    folders = dict.fromkeys([*sys.path, *interpreter, *_LIBRARIES, *_DEVICES])
    return [folder for folder in folders if _narrow(folder) and Path(folder).exists()]


def _narrow(folder: str) -> bool:
    """The working directory is on many module paths; when it is ``/``, it would open everything."""
    return Path(folder).is_absolute() and Path(folder).resolve() != Path("/")


def _out_of_the_way(file: int) -> int:
    """Move an open file to a number that no child gives to its streams and its connection."""
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 16)
    os.close(file)
    return moved


def _sacrifice_first() -> None:
    """When memory runs out, the kernel shall take the episode and not its worker."""
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")
        os.close(score)


def _limit(memory_bytes: int, disk_bytes: int) -> None:
    limits = {
        resource.RLIMIT_AS: _address_space() + memory_bytes,
        resource.RLIMIT_FSIZE: disk_bytes,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    if disk_bytes:  # a harder limit some seconds later, so that the first signal tells what happened
        resource.setrlimit(resource.RLIMIT_CPU, (COMPANION_CPU_S, COMPANION_CPU_S + 5))
    for kind, value in limits.items():
        with contextlib.suppress(ValueError, OSError):  # macOS has no RLIMIT_AS worth the name
            resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    try:
        statm = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    pages = os.read(statm, 64).split()[0]
    os.close(statm)
    return int(pages) * resource.getpagesize()
