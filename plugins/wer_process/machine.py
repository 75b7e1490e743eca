"""One worker as a process of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence

from wer.sandboxing.machines import Death, unbroken

_LAST_WORDS = 8192


class ProcessMachine:
    """Implements `wer.sandboxing.machines.Machine`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._words = b""
        self._listener = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, command: Sequence[str], environ: Mapping[str, str]) -> ProcessMachine:
        """Start a command in a session of its own, so that Ctrl-C reaches the driver only."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environ,
            cwd="/",
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=PIPE,
            start_new_session=True,
        )
        return cls(process)

    async def ended(self) -> None:
        """Return when the process has ended and its exit status is known."""
        await self._process.wait()

    async def autopsy(self) -> Death:
        """Read exit status or signal, and the end of stderr; a process that still lives has hung."""
        with contextlib.suppress(TimeoutError):  # the control line drops a moment before the process ends
            async with asyncio.timeout(1.0):
                await self._process.wait()
                await self._listener
        words = self._words.decode(errors="replace")
        status = self._process.returncode
        if status is None:
            return Death("hung", "its process is there but does not answer", words)
        if status < 0:
            return Death("dead", f"its process was killed by {signal.Signals(-status).name}", words)
        return Death("dead", f"its process ended with exit status {status}", words)

    async def remove(self) -> None:
        """Kill the process and wait for it, so that no zombie stays."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await unbroken(self._process.wait())
        await unbroken(self._listener)

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while news := await self._process.stderr.read(65536):
            self._words = (self._words + news)[-_LAST_WORDS:]
