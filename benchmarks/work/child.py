"""What every measured process needs: its settings, its clocks, and a way to answer. The standard library only."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_SETTINGS: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


def asked(name: str, default: Any = None) -> Any:
    """What the parent said about a name."""
    return _SETTINGS.get(name, default)


def wall_s() -> float:
    """Seconds, monotonic."""
    return time.perf_counter()


def cpu_s() -> float:
    """User and system seconds of this process, all threads."""
    times = os.times()
    return times.user + times.system


def resident_mb() -> float:
    """Memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """The most memory that this process ever had, or had since `forget_peak`."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e6


def forget_peak() -> None:
    """Let the peak begin again at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def answer(**values: Any) -> None:
    """Tell the parent, once, at the end."""
    print(json.dumps(values), flush=True)
