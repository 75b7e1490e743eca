"""Everything is measured in a process of its own: memory and CPU seconds are then its alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WORK = Path(__file__).parent / "work"
_LIMIT_S = 600.0


def measured(script: str, python: Path | str = sys.executable, **settings: Any) -> dict[str, Any]:
    """Run one of the scripts in ``work`` and give what it measured.

    Raises:
        RuntimeError: It failed; with the end of what it said.
    """
    ended = subprocess.run(
        [str(python), str(WORK / script), json.dumps(settings)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        env=environ(),
    )
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        raise RuntimeError(f"{script} {settings} failed:\n{ended.stderr.strip()[-1500:]}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def environ() -> Mapping[str, str]:
    """The environment, without what would send a request or a metric outside or spin while it waits."""
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "passive", "TRL_EXPERIMENTAL_SILENCE": "1"}
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    return {name: value for name, value in os.environ.items() if name.lower() not in proxies} | quiet


@contextmanager
def mock_server(delay_s: float) -> Iterator[str]:
    """The address of a model server that takes so long to answer, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(WORK / "mock_server.py"), str(delay_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
