"""Runs OpenRLHF's own command line as a child, watches it, and leaves nothing of it behind."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from attrs import define, field, frozen

from wer.contracts import OptimizerSetup
from wer.errors import OptimizerError
from wer_openrlhf import processes

ACTORS = ("RolloutRayActor", "PolicyModelActor", "PPOTrainer")
"""Ray actors without which no candidate is asked for."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_SPEAKS = re.compile(r"^\((\w+) pid=")
_DEAD = re.compile(r"class_name: (\w+)|The actor (\w+) died|Actor\((\w+), \w+\) died")
_SECRET = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$", re.IGNORECASE)
_NEEDED = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "RAY_AUTH_TOKEN", "WANDB_API_KEY"})
_CHECK_S = 0.2
_HEAD_S = 5.0
_TAIL = 30


@frozen(kw_only=True)
class Limits:
    """When a launch counts as hung.

    Attributes:
        start_s: From the launch to the first sign of life that `watch` is told of.
        stall_s: Between two signs of life.
    """

    start_s: float
    stall_s: float


@define(kw_only=True, eq=False)
class Launch:
    """One run of a program in the other Python.

    Attributes:
        command: Its arguments; never a secret.
        log: File that gets all it says.
        mark: Names the launch's processes; the same for every try of one phase, so that
            a later try finds what an earlier one left.
        secrets: Texts that must not reach the log.
        on_line: Told each line.
        environ: Additions to the environment.
    """

    command: Sequence[str]
    log: Path
    mark: str
    secrets: Sequence[str] = ()
    on_line: Callable[[str], None] = lambda line: None
    environ: Mapping[str, str] = field(factory=dict)
    tail: deque[str] = field(factory=lambda: deque(maxlen=_TAIL), init=False)
    alive: set[str] = field(factory=set, init=False)
    dead: set[str] = field(factory=set, init=False)
    _spoke: float = field(default=0.0, init=False)

    async def run(
        self,
        *,
        limits: Limits,
        seen: Callable[[], float | None],
        failed: asyncio.Future[BaseException],
    ) -> None:
        """Run it to its end.

        Args:
            seen: When it last gave a sign of life, on the monotonic clock; None before the first.
            failed: Once set, the child is ended and that exception is raised.

        Raises:
            OptimizerError: It ended with an error, or hung, with its last lines; or the cluster
                that it had joined has no head any more.
        """
        await processes.end(self.mark)
        began = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.log.open("a", encoding="utf-8") as log:
                await self._run(log, began, limits, seen, failed)
        except OptimizerError as error:
            address = self.environ.get("RAY_ADDRESS", "")
            if not address or await _answers(address):
                raise
            raise OptimizerError(
                f"the head of the Ray cluster at {address} no longer answers, and OpenRLHF can't go on without it. "
                f"Start the cluster again, and go on with --resume.\n{error}"
            ) from error

    async def _run(
        self,
        log: IO[str],
        began: float,
        limits: Limits,
        seen: Callable[[], float | None],
        failed: asyncio.Future[BaseException],
    ) -> None:
        process = await asyncio.create_subprocess_exec(
            *processes.tied(self.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment({**self.environ, processes.MARK: self.mark}),
            start_new_session=True,
            limit=1 << 20,
        )
        reader = asyncio.create_task(self._read(process, log))
        watched: list[asyncio.Future[Any]] = [reader, failed]
        try:
            while not reader.done():
                await asyncio.wait(watched, timeout=_CHECK_S, return_when=asyncio.FIRST_COMPLETED)
                if failed.done():
                    raise failed.result()
                self._in_time(limits, began, seen())
            reader.result()  # a log that cannot be written, or a step that cannot be stored, ends the launch
            code = await process.wait()
            if failed.done():
                raise failed.result()
            if code:
                raise OptimizerError(f"OpenRLHF ended with exit status {code}{self._cause()}")
        finally:
            await asyncio.shield(self._stop(process, reader))

    async def _stop(self, process: asyncio.subprocess.Process, reader: asyncio.Task[None]) -> None:
        await processes.end(self.mark)
        await asyncio.wait([reader], timeout=5.0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await process.wait()

    def _in_time(self, limits: Limits, began: float, seen: float | None) -> None:
        now = time.monotonic()
        if seen is None and now - began > limits.start_s:
            missing = sorted(set(ACTORS) - self.alive)
            raise OptimizerError(
                f"OpenRLHF asked for no candidate within {limits.start_s:.0f} s "
                f"(optimizer.openrlhf.start_timeout_s); no word from: {', '.join(missing) or 'nobody'}"
                f"{self._cause()}"
            )
        if seen is not None and now - max(seen, self._spoke) > limits.stall_s:
            raise OptimizerError(
                f"OpenRLHF gave no sign of life for {limits.stall_s:.0f} s "
                f"(optimizer.openrlhf.stall_timeout_s){self._cause()}"
            )

    def _cause(self) -> str:
        dead = f"\ndead Ray actors: {', '.join(sorted(self.dead))}" if self.dead else ""
        words = "\n".join(self.tail)
        return f". The log is {self.log}{dead}\nits last lines:\n{words}"

    async def _read(self, process: asyncio.subprocess.Process, log: IO[str]) -> None:
        assert process.stdout is not None
        while True:
            try:
                raw = await process.stdout.readline()
            except ValueError:  # a line of a megabyte: nothing that we read
                continue
            if not raw:
                return
            self._line(raw.decode("utf-8", "replace"), log)

    def _line(self, raw: str, log: IO[str]) -> None:
        line = _ANSI.sub("", raw).rstrip()
        for secret in self.secrets:
            line = line.replace(secret, "[secret]")
        log.write(line + "\n")
        log.flush()
        line = line.rpartition("\r")[2]
        if not line.strip():
            return
        self._spoke = time.monotonic()
        self.tail.append(line[:500])
        if speaks := _SPEAKS.match(line):
            self.alive.add(speaks.group(1))
        if dead := _DEAD.search(line):
            self.dead.add(next(filter(None, dead.groups())))
        self.on_line(line)


def devices(setup: OptimizerSetup) -> dict[str, str]:
    """Say on which machines a child works: a cluster's, or those GPUs here that the user gave to the writer."""
    if setup.ray_address:
        return {"RAY_ADDRESS": setup.ray_address}
    if not setup.gpus:
        return {}
    # The order of nvidia-smi, by which the user counts.
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, setup.gpus)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


async def _answers(address: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_HEAD_S):
            _, line = await asyncio.open_connection(host, int(port))
    except (OSError, ValueError, TimeoutError):
        return False
    line.close()
    return True


def environment(additions: Mapping[str, str]) -> dict[str, str]:
    """Give a child our environment without keys that it does not need, or a cluster that nobody named."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "RAY_ADDRESS" and (name in _NEEDED or not _SECRET.search(name))
    }
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "RAY_DEDUP_LOGS": "0"}
    return {**kept, **ours, "RAY_USAGE_STATS_ENABLED": "0", **additions}
