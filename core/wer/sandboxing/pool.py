"""A pool of warm workers of one spec: the shared half of every sandbox plugin."""

from __future__ import annotations

import asyncio

from wer.contracts import Episode
from wer.errors import SandboxError
from wer.records import SandboxSpec
from wer.sandboxing.machines import Launcher
from wer.sandboxing.rendezvous import Rendezvous
from wer.sandboxing.workers import Worker


class WorkerPool:
    """Implements `wer.contracts.Pool` over any `Launcher`."""

    def __init__(self, spec: SandboxSpec, launcher: Launcher, meeting: Rendezvous) -> None:
        self._spec = spec
        self._launcher = launcher
        self._meeting = meeting
        self._workers: list[Worker] = []
        self._replacing = asyncio.Lock()
        self._layers: tuple[str, ...] = ()
        self._closed = False

    @classmethod
    async def start(cls, spec: SandboxSpec, launcher: Launcher, workers: int) -> WorkerPool:
        """Start the workers, and fork one episode to see that it works and what confines it.

        Raises:
            SandboxError: With ``cause="start"``; nothing is left running.
        """
        pool = cls(spec, launcher, await Rendezvous.open(shared=launcher.shared))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(1, workers)):
                    group.create_task(pool._add())
            episode = await pool._workers[0].fork()
            pool._layers = episode.layers
            await episode.close()
        except BaseExceptionGroup as errors:
            await pool.close()
            raise _first(errors) from None
        except BaseException:
            await pool.close()
            raise
        return pool

    @property
    def tier(self) -> str:
        """What surrounds each worker, and what its episodes say that they confine themselves with."""
        return f"{self._launcher.isolation}; every episode: {', '.join(self._layers)}"

    async def lease(self) -> Episode:
        """Fork a fresh episode on the least busy live worker; see `wer.contracts.Pool`."""
        for _ in self._workers:
            worker = await self._least_busy()
            try:
                return await worker.fork()
            except SandboxError:
                if worker.alive:
                    raise
        return await (await self._least_busy()).fork()

    async def close(self) -> None:
        """Stop every worker and remove the socket's folder. Safe to call twice.

        Raises:
            SandboxError: A worker could not be removed; all else is.
        """
        if self._closed:
            return
        self._closed = True
        async with self._replacing:
            stops = [worker.stop() for worker in self._workers]
            ended = await asyncio.gather(*stops, return_exceptions=True)
            await self._meeting.close()
            await self._launcher.close()
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    async def _add(self) -> None:
        self._workers.append(await self._worker())

    async def _worker(self) -> Worker:
        return await Worker.start(self._spec, self._meeting, self._launcher)

    async def _least_busy(self) -> Worker:
        async with self._replacing:
            if self._closed:
                raise SandboxError(f"the sandbox {self._spec.name!r} was closed", cause="dead")
            for place, worker in enumerate(self._workers):
                if not worker.alive:
                    await worker.stop()
                    self._workers[place] = await self._worker()
        return min(self._workers, key=lambda worker: worker.episodes)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
