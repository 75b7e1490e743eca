"""bubblewrap around a worker: no network, no other processes, and few of the machine's files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")


def find() -> str | None:
    """Give bubblewrap's path when it is there and works; many distributions forbid its namespaces."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    trial = [*around(program, []), sys.executable, "-S", "-c", ""]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if done.returncode == 0 else None


def around(program: str, folders: Sequence[Path]) -> list[str]:
    """Give the words that go before a command.

    Args:
        folders: What it may read beside the interpreter and the system's libraries.
    """
    interpreter = {Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("stdlib"))}
    binds = [word for path in _SYSTEM for word in ("--ro-bind-try", path, path)]
    binds += [
        word for path in (*sorted(interpreter), *folders) for word in ("--ro-bind", str(path), str(path))
    ]
    alone = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    nobody = ["--uid", "65534", "--gid", "65534"]
    mounts = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - its own
    return [program, *alone, *nobody, *mounts, *binds]
