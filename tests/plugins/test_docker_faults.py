"""A Docker daemon that goes away and comes back, and a container without pids left: retried, never scored."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from docker.models.containers import Container
from support import census, tiers

from wer.errors import SandboxError
from wer_docker import containers

pytestmark = pytest.mark.docker

REAL = "/var/run/docker.sock"


class Daemon:
    """The real daemon behind a socket of ours, which can go away as if it were restarted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def come(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))

    async def go(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.transport.abort()
        self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(REAL)
        self._open |= {writer, back}
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        self._open -= {writer, back}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.fixture
async def daemon(tmp_path_factory, monkeypatch) -> AsyncIterator[Daemon]:
    served = Daemon(tmp_path_factory.mktemp("d") / "docker.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{served.path}")
    await served.come()
    yield served
    await served.go()


async def works(pool) -> bool:
    episode = await pool.lease()
    try:
        return await episode.request("count", {}) == 1
    finally:
        await episode.close()


async def the_container(patch: pytest.MonkeyPatch) -> Container:
    """The only one of this process, by the real daemon."""
    with patch.context() as around:
        around.setenv("DOCKER_HOST", f"unix://{REAL}")
        (container,) = await asyncio.to_thread(census.containers)
    return container


async def test_a_daemon_that_is_restarted_costs_one_try_and_leaves_nothing(daemon, monkeypatch):
    async with tiers.pool("docker") as pool:
        waiting = asyncio.create_task((await pool.lease()).request("hang", {}))
        container = await the_container(monkeypatch)
        await daemon.go()
        await asyncio.to_thread(container.kill)

        with pytest.raises(SandboxError) as met:
            await waiting
        leasing = asyncio.create_task(works(pool))
        await asyncio.sleep(1.0)
        await daemon.come()

        assert met.value.cause == "dead"
        assert await leasing

    assert await asyncio.to_thread(census.containers) == []
    assert census.folders() == []


async def test_a_daemon_that_stays_away_is_named_and_its_container_left_to_the_next_run(daemon, monkeypatch):
    monkeypatch.setattr(containers, "PATIENCE_S", 0.1)

    with pytest.raises(SandboxError, match="the next run removes it, since no Docker daemon answers"):
        async with tiers.pool("docker") as pool:
            assert await works(pool)
            container = await the_container(monkeypatch)
            await daemon.go()

    assert census.folders() == []
    await asyncio.to_thread(container.remove, force=True)
    await daemon.come()


async def test_a_container_without_pids_left_is_a_fault_and_works_again_once_one_is_free():
    async with tiers.pool("docker", pids=6) as pool:
        episodes = []
        with pytest.raises(SandboxError, match="fork"):
            while True:
                episodes.append(await pool.lease())

        for episode in episodes:
            await episode.close()
        await asyncio.sleep(0.5)

        assert episodes
        assert await works(pool)
