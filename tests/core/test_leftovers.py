"""However a command ends, the machine is as it was: counted in processes, sockets, folders, containers and locks."""

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
from support.mock_openai import MockOpenAI, fails, hangs, says

from wer import folders

SHOP = Path(__file__).parents[2] / "examples" / "shop" / "shop.py"
TIERS = ["process", pytest.param("docker", marks=pytest.mark.docker)]


class Machine:
    """A temporary folder of a command's own, and what is left there and elsewhere."""

    def __init__(self, root: Path, tier: str) -> None:
        self.tmp = root / "tmp"
        self.tmp.mkdir()
        self.runs = root / "runs"
        self.tier = tier
        self.drivers: list[int] = []

    async def begin(self, mock: MockOpenAI, *words: str) -> asyncio.subprocess.Process:
        """Start ``wer eval`` of no great skill in a process of its own."""
        skill = self.tmp.parent / "SKILL.md"
        skill.write_text("---\nname: shop\ndescription: Run a shop.\n---\n1. Be kind.\n")
        given = [
            f"--env={SHOP}:shop",
            f"--executor=openai/m@{mock.url}",
            f"--sandbox={self.tier}",
            "--trials=1",
        ]
        command = ["-m", "wer", "eval", str(skill), *given, f"--runs={self.runs}", *words]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            env={**os.environ, "TMPDIR": str(self.tmp)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.drivers.append(process.pid)
        return process

    def left(self) -> list[object]:
        """Processes, containers, sockets, temporary folders, locks and half-written files."""
        containers = [each for pid in self.drivers for each in self.containers(pid)]
        held = [run for run in self.runs.glob("*") if folders.holder(run) is not None]
        half = [path for path in self.runs.rglob("*") if path.name.startswith(".") or path.suffix == ".new"]
        return [*census.processes_of(self.tmp), *containers, *self.tmp.iterdir(), *held, *half]

    def containers(self, pid: int) -> list[object]:
        return list(census.containers(pid)) if self.tier == "docker" else []


@pytest.fixture(params=TIERS)
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="w") as folder:  # short enough for sockets
        yield Machine(Path(folder), request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "status"), [(says("done"), 0), (fails(401), 2)], ids=["normal end", "error"]
)
async def test_an_end_leaves_nothing(machine, answer, status):
    async with MockOpenAI(default=answer) as mock:
        process = await machine.begin(mock)
        printed, _ = await process.communicate()

    assert process.returncode == status, printed.decode()
    assert machine.left() == []


@pytest.mark.slow
async def test_ctrl_c_leaves_nothing(machine):
    async with MockOpenAI(default=hangs()) as mock:
        process = await machine.begin(mock)
        await asked(mock, process)

        process.send_signal(signal.SIGINT)
        printed, _ = await process.communicate()

    assert process.returncode == 130, printed.decode()
    assert machine.left() == []


@pytest.mark.slow
async def test_the_start_after_a_kill_cleans_up_after_it(machine):
    async with MockOpenAI(default=hangs()) as mock:
        process = await machine.begin(mock)
        await asked(mock, process)
        assert machine.left()

        process.kill()
        await process.communicate()
        mock.default = says("done")
        following = await machine.begin(mock)
        printed, _ = await following.communicate()

    assert following.returncode == 0, printed.decode()
    assert "removed what an earlier run left" in printed.decode()
    assert machine.left() == []


async def asked(mock: MockOpenAI, process: asyncio.subprocess.Process) -> None:
    """Wait until the first rollout is under way."""
    while not mock.requests:
        assert process.returncode is None, (await process.communicate())[0].decode()
        await asyncio.sleep(0.1)
