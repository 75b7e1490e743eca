"""On what it was measured: figures without their machine say nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, Python, and how busy it is now."""
    return {
        "processor": _line(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "load_1_minute": round(os.getloadavg()[0], 2),
    }


def _line(path: Path, start: str) -> str:
    """What follows a colon on the first line that starts so; empty where there is none."""
    if not path.is_file():
        return ""
    found = [line for line in path.read_text().splitlines() if line.startswith(start)]
    return found[0].partition(":")[2].strip() if found else ""
