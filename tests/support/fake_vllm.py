"""A program that passes for ``vllm``: it serves the mock, and fails in the ways that a test asks for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

TESTS = Path(__file__).parent.parent
_ENGINE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@frozen(kw_only=True)
class FakeVllm:
    """The program as a test has it.

    Attributes:
        path: Of the program.
        record: A file with a line of JSON for each start and each request.
        orders: A file with what goes wrong: ``hang``; ``die TEXT`` at the start; ``die once asked``.
    """

    path: Path
    record: Path
    orders: Path

    @classmethod
    def install(cls, folder: Path) -> FakeVllm:
        """Write the program; it has an engine in another process that does not stop when asked."""
        path = folder / "bin" / "vllm"
        path.parent.mkdir()
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(TESTS)!r})\n"
            f"from support.fake_vllm import main\nmain({str(folder)!r})\n"
        )
        path.chmod(0o755)
        return cls(path=path, record=folder / "record.jsonl", orders=folder / "orders")

    def starts(self) -> list[Mapping[str, Any]]:
        """What was given to each start: ``argv``, ``environ``, and the ``pids`` that it had."""
        return self._lines("argv")

    def requests(self) -> list[Mapping[str, Any]]:
        """The bodies of all requests."""
        return [line["body"] for line in self._lines("body")]

    def processes(self) -> list[int]:
        """Pids of all starts that are still there, but for zombies."""
        return [pid for start in self.starts() for pid in start["pids"] if _lives(pid)]

    def _lines(self, key: str) -> list[Mapping[str, Any]]:
        if not self.record.exists():
            return []
        return [line for line in map(json.loads, self.record.read_text().splitlines()) if key in line]


def main(place: str) -> None:
    """Be ``vllm``."""
    folder = Path(place)
    orders = folder / "orders"
    order = orders.read_text() if orders.exists() else ""
    engine = subprocess.Popen([sys.executable, "-c", _ENGINE])
    record = folder / "record.jsonl"
    pids = [os.getpid(), engine.pid, os.getppid()]
    _write(record, {"argv": sys.argv[1:], "environ": dict(os.environ), "pids": pids})
    print("INFO 01-01 00:00:00 [fake.py:1] loading", file=sys.stderr)
    if order.startswith("die ") and order != "die once asked":
        sys.exit(order.removeprefix("die "))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(_serve(order, record))


async def _serve(order: str, record: Path) -> None:
    if order == "hang":
        await asyncio.Event().wait()

    from support.mock_openai import MockOpenAI, fails, says  # late, so that dying is quick

    port = int(sys.argv[sys.argv.index("--port") + 1])
    key = os.environ["VLLM_API_KEY"]

    def answer(body: Mapping[str, Any]) -> Any:
        _write(record, {"body": body})
        if mock.headers[-1].get("Authorization") != f"Bearer {key}":
            return fails(401)(body)
        if order == "die once asked":
            print("torch.OutOfMemoryError: CUDA out of memory", file=sys.stderr, flush=True)
            os._exit(1)
        skill = (
            "<think>why</think><skill>\nname: counting\ndescription: Count.\n## Workflow\n1. try\n</skill>"
        )
        return says(skill)(body)

    mock = MockOpenAI(default=answer, port=port)
    async with mock:
        await asyncio.Event().wait()


def _write(record: Path, line: Mapping[str, Any]) -> None:
    with record.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
