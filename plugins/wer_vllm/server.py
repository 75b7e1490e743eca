"""One ``vllm serve`` of this machine: started, watched, stopped, and its death explained."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import aiohttp
from attrs import frozen

from wer import keeper
from wer.errors import ModelError
from wer_vllm.causes import last_words, likely_cause
from wer_vllm.leftovers import Note, notes_folder

_GRACE_S = 15.0
_LOOK_S = 0.3
_TELL_S = 20.0
_TAIL_BYTES = 64 << 10


@frozen(kw_only=True)
class Plan:
    """How a server is started, again if need be.

    Attributes:
        model: As the user named it, for messages.
        command: Made for a port.
        environ: Made for a key.
        log: Where its output goes; a folder gets a file of its own in it.
        start_s: Seconds until it is given up.
        say: Told how the start goes.
    """

    model: str
    command: Callable[[int], Sequence[str]]
    environ: Callable[[str], Mapping[str, str]]
    log: Path
    start_s: float
    say: Callable[[str], None]


def log_path(folder: Path | None, name: str) -> Path:
    """Where a server writes: ``vllm-NAME.log`` in the run's folder for logs, or in the cache."""
    folder = folder or notes_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"vllm-{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-')[-100:]}.log"


class Server:
    """A server that has been started and may still be loading.

    Attributes:
        url: Of its interface, up to and with ``/v1``.
        key: That callers must show; not on any command line or in any file.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        self.key = secrets.token_urlsafe(32)
        self._began = plan.log.stat().st_size if plan.log.exists() else 0
        with plan.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, str(_GRACE_S), *plan.command(port)],
                env=plan.environ(self.key),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._note = Note.write(plan.model, self._process.pid)

    @property
    def dead(self) -> bool:
        """Whether its keeper has ended, and with it everything else."""
        return self._process.poll() is not None

    async def ready(self) -> None:
        """Wait until it answers.

        Raises:
            ModelError: It died, or took longer than ``start_s``.
        """
        began = told = time.monotonic()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as client:
            while not await self._healthy(client):
                now = time.monotonic()
                if self.dead:
                    raise ModelError(self.obituary("did not start"))
                if now - began > self._plan.start_s:
                    words = self.obituary(f"has not answered in {self._plan.start_s:g} s")
                    await self.stop()
                    raise ModelError(f"{words}\nGive it longer with ?start_s=, if it was getting somewhere.")
                if now - told >= _TELL_S:
                    told = now
                    self._plan.say(
                        f"vllm/{self._plan.model} is starting ({now - began:.0f} s): {self._last_line()}"
                    )
                await asyncio.sleep(_LOOK_S)
        self._plan.say(f"vllm/{self._plan.model} is ready after {time.monotonic() - began:.0f} s")

    async def died(self, within_s: float) -> bool:
        """Whether it is dead, or is so a moment later: a broken connection is heard of before an exit."""
        for _ in range(int(within_s / _LOOK_S)):
            if self.dead:
                break
            await asyncio.sleep(_LOOK_S)
        return self.dead

    async def stop(self) -> None:
        """Ask it to stop, wait, and leave no process. Safe to call twice."""
        await asyncio.to_thread(self._stop)

    def obituary(self, happened: str) -> str:
        """What happened, the likely cause, and the last words of the log."""
        words = self._words()
        cause = likely_cause(words, self._process.poll())
        end = last_words(words) or "(nothing written)"
        return f"vllm/{self._plan.model} {happened}: {cause}.\nthe end of {self._plan.log}:\n{end}"

    def _stop(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE_S + 30.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._note.clear()

    async def _healthy(self, client: aiohttp.ClientSession) -> bool:
        try:
            async with client.get(f"{self.url.removesuffix('/v1')}/health") as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    def _words(self) -> str:
        """The end of what this server wrote, without its key."""
        with self._plan.log.open("rb") as log:
            log.seek(max(self._began, self._plan.log.stat().st_size - _TAIL_BYTES))
            return log.read().decode("utf-8", "replace").replace(self.key, "***")

    def _last_line(self) -> str:
        lines = [line for line in self._words().splitlines() if line.strip()]
        return lines[-1][-160:] if lines else "(nothing written yet)"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
