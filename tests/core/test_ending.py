"""A run that is told to end, by Ctrl-C or by a scheduler, leaves nothing and says how to go on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import census
from support.mock_openai import MockOpenAI, hangs

FIRST = "import os, signal, sys; {}; os.execv(sys.executable, [sys.executable, '-m', 'wer', *sys.argv[1:]])"
IGNORED = "signal.signal(signal.{}, signal.SIG_IGN)"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        yield Path(folder)


async def begin(mock: MockOpenAI, scratch: Path, ignored: str = "") -> asyncio.subprocess.Process:
    """Start a run in a process of its own, and wait until its first rollout is under way."""
    words = ["run", "--env=bfcl", f"--executor=openai/m@{mock.url}", "--sandbox=process"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        FIRST.format(IGNORED.format(ignored) if ignored else "pass"),
        *words,
        f"--runs={scratch / 'runs'}",
        env={**os.environ, "TMPDIR": str(scratch / "tmp")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    while not mock.requests:
        assert process.returncode is None, (await process.communicate())[1].decode()
        await asyncio.sleep(0.1)
    return process


def ignored_by(pid: int) -> list[signal.Signals]:
    status = Path(f"/proc/{pid}/status").read_text()
    bits = int(status.split("SigIgn:")[1].split()[0], 16)
    return [number for number in signal.Signals if bits >> (number - 1) & 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "ignored", "status"),
    [
        (signal.SIGINT, "", 130),
        (signal.SIGTERM, "", 143),
        (signal.SIGTERM, "SIGINT", 143),
    ],
    ids=["ctrl-c", "kill", "kill a background job of a script"],
)
async def test_a_run_that_is_told_to_end_leaves_nothing_and_says_how_to_go_on(
    scratch, ending, ignored, status
):
    (scratch / "tmp").mkdir()
    async with MockOpenAI(default=hangs()) as mock:
        process = await begin(mock, scratch, ignored)
        assert census.processes_of(scratch / "tmp")

        process.send_signal(ending)
        _, printed = await process.communicate()

    (folder,) = (scratch / "runs").iterdir()
    assert process.returncode == status
    assert f"go on with: wer run --resume {folder}" in printed.decode()
    assert "Traceback" not in printed.decode()
    assert census.processes_of(scratch / "tmp") == []
    assert list((scratch / "tmp").iterdir()) == []


@pytest.mark.slow
async def test_a_run_that_outlives_its_terminal_by_nohup_is_not_ended_with_it(scratch):
    (scratch / "tmp").mkdir()
    async with MockOpenAI(default=hangs()) as mock:
        process = await begin(mock, scratch, "SIGHUP")

        deaf = ignored_by(process.pid)
        process.send_signal(signal.SIGTERM)
        await process.communicate()

    assert signal.SIGHUP in deaf
