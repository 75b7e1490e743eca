"""Counting what sandboxes leave on the machine. Only what this very process started counts."""

import contextlib
import json
import os
import tempfile
from pathlib import Path


def servers(tier: str, owner: int | None = None) -> list[int]:
    """Pids of one driver's workers and their children, in any pid namespace below ours."""
    if tier == "docker":
        running = [container for container in containers(owner) if container.status == "running"]
        return sorted(int(row[1]) for container in running for row in container.top()["Processes"])
    return sorted(pid for folder in folders(owner) for pid in processes_of(folder))


def processes_of(folder: Path) -> list[int]:
    """Pids of the processes that were started with a path in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_text(errors="replace") if entry.name.isdigit() else ""
            if str(folder) in words:
                found.append(int(entry.name))
    return sorted(found)


def folders(owner: int | None = None) -> list[Path]:
    """Socket folders of one driver, this process by default."""
    mine = []
    for folder in Path(tempfile.gettempdir()).glob("wer-sandbox-*"):
        try:
            note = json.loads((folder / "owner.json").read_text())
        except (OSError, ValueError):
            continue
        if note["pid"] == str(owner or os.getpid()):
            mine.append(folder)
    return mine


def containers(owner: int | None = None) -> list:
    """Containers of one driver, this process by default."""
    import docker

    client = docker.from_env()
    try:
        labels = ["wer.managed=1", f"wer.pid={owner or os.getpid()}"]
        return client.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
    finally:
        client.close()
