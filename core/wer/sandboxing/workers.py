"""A worker as its pool holds it: forks episodes on request and knows when it died."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from wer.errors import SandboxError
from wer.records import SandboxSpec
from wer.sandboxing.leases import LeasedEpisode
from wer.sandboxing.lines import Connection, Message
from wer.sandboxing.machines import Death, Launcher, Machine
from wer.sandboxing.rendezvous import Rendezvous

_START_S = 120.0
_FORK_S = 20.0
_AUTOPSY_S = 2.0

T = TypeVar("T")


class Worker:
    """One live server of a spec, with its episodes."""

    def __init__(self, spec: SandboxSpec, meeting: Rendezvous, machine: Machine) -> None:
        self._spec = spec
        self._meeting = meeting
        self._machine = machine
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lost = asyncio.Event()
        self._running: dict[str, asyncio.Future[Death]] = {}
        self._control: Connection | None = None

    @classmethod
    async def start(cls, spec: SandboxSpec, meeting: Rendezvous, launcher: Launcher) -> Worker:
        """Launch one worker and wait until it has loaded its domain.

        Raises:
            SandboxError: With ``cause="start"`` and the worker's last words.
        """
        key, call = meeting.expect()
        worker = cls(spec, meeting, await launcher.launch(meeting.folder, key))
        try:
            caller = await worker._started(call)
            worker._control = caller.connection
            caller.connection.trust(worker._heard, worker._hung_up)
            await worker._started(worker._ready)
        except BaseException:
            call.cancel()
            await worker.stop()
            raise
        return worker

    @property
    def alive(self) -> bool:
        """Whether its control connection still stands; one that dies takes its episodes with it."""
        return not self._lost.is_set()

    @property
    def episodes(self) -> int:
        """How many episodes run in it now, so that the least busy worker is chosen."""
        return len(self._running)

    async def fork(self) -> LeasedEpisode:
        """Fork a fresh episode.

        Raises:
            SandboxError: The worker died, or the episode never called.
        """
        lease, call = self._meeting.expect()
        end: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self._running[lease] = end
        end.add_done_callback(lambda _: self._running.pop(lease, None))
        self._order({"fork": lease})
        try:
            signs: set[asyncio.Future[Any]] = {call, end}
            await asyncio.wait(signs, timeout=_FORK_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._order({"kill": lease})
            if not call.cancel():
                call.result().connection.hang_up()
            raise
        if not call.done():
            call.cancel()
            self._order({"kill": lease})
            death = await self._autopsy(end)
            raise SandboxError(
                f"the sandbox {self._spec.name!r} could not fork an episode: {death.story}",
                cause=death.cause if death.cause != "dead" else "start",
                stderr_tail=death.words,
            )
        caller = call.result()
        return LeasedEpisode(
            caller.connection,
            layers=tuple(map(str, caller.hello.get("layers", ()))),
            autopsy=lambda: self._autopsy(end),
            kill=lambda: self._order({"kill": lease}),
            timeout_s=self._spec.call_timeout_s,
        )

    async def stop(self) -> None:
        """Kill the worker with its episodes, and leave nothing. Safe to call twice."""
        if self._control is not None:
            self._control.hang_up()
        await self._machine.remove()
        self._lost.set()

    def _order(self, order: Message) -> None:
        if self._control is not None:
            self._control.say(order)

    def _heard(self, message: Message) -> None:
        if "ready" in message and not self._ready.done():
            self._ready.set_result(None)
        elif "failed" in message and not self._ready.done():
            self._ready.set_exception(self._unloadable(str(message["failed"])))
        elif (end := self._running.get(str(message.get("ended")))) is not None and not end.done():
            cause = "out_of_memory" if message.get("out_of_memory") else "dead"
            end.set_result(Death(cause, str(message.get("why")), str(message.get("words"))))

    def _hung_up(self, problem: str) -> None:
        self._lost.set()

    async def _started(self, hoped: asyncio.Future[T]) -> T:
        """Wait for one sign of life, but no longer than the machine lives."""
        signs: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(self._machine.ended()),
            asyncio.ensure_future(self._lost.wait()),
        }
        try:
            await asyncio.wait({*signs, hoped}, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sign in signs:
                sign.cancel()
            await asyncio.gather(*signs, return_exceptions=True)
        if hoped.done():
            return hoped.result()
        death = await self._machine.autopsy()
        raise SandboxError(
            f"a worker of the sandbox {self._spec.name!r} did not start: {death.story}",
            cause="start",
            stderr_tail=death.words,
        )

    def _unloadable(self, traceback: str) -> SandboxError:
        return SandboxError(
            f"the domain {self._spec.domain!r} could not be loaded in the sandbox {self._spec.name!r}",
            cause="start",
            stderr_tail=traceback,
        )

    async def _autopsy(self, end: asyncio.Future[Death]) -> Death:
        """How an episode ended, from its worker; or how the worker did, which took it along."""
        lost = asyncio.ensure_future(self._lost.wait())
        signs: set[asyncio.Future[Any]] = {end, lost}
        await asyncio.wait(signs, timeout=_AUTOPSY_S, return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if end.done():
            return end.result()
        death = await self._machine.autopsy()
        if self.alive:  # it obeys no more, so nothing may be left to it
            await self.stop()
            return Death("hung", f"its worker does not answer ({death.story})", death.words)
        return death
