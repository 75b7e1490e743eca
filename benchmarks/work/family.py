"""What the sandbox's processes cost: this process's descendants, and its containers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def descendants() -> Iterator[int]:
    """The processes below this one."""
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            yield pid


def cpu_s() -> float:
    """CPU seconds of the descendants and of this process's containers so far, ended children included."""
    total = 0
    for pid in descendants():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total * _TICK_S + _containers_cpu_s()


def private_mb(pids: Iterable[int]) -> float:
    """Memory that is these processes' alone."""
    private = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        private += sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return private / 1024


def _parent(entry: Path) -> int:
    try:
        return int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _containers_cpu_s() -> float:
    """What the daemon says of the containers that this process started; 0 without the library or a daemon."""
    try:
        import docker

        client = docker.from_env()
    except Exception:
        return 0.0
    try:
        label = {"label": f"wer.pid={os.getpid()}"}
        found = [
            client.api.stats(each["Id"], stream=False, one_shot=True)
            for each in client.api.containers(filters=label)
        ]
    finally:
        client.close()
    return sum(each["cpu_stats"]["cpu_usage"]["total_usage"] for each in found) / 1e9
