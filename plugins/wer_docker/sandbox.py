"""The sandbox ``docker``: warm containers, a worker each, that fork one child per episode."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wer.contracts import Pool
from wer.errors import SandboxError
from wer.records import SandboxSpec
from wer.sandboxing import recipe
from wer.sandboxing.machines import Machine
from wer.sandboxing.pool import WorkerPool
from wer.sandboxing.scratch import reap_folders
from wer_docker import daemon, images, labels
from wer_docker.containers import ContainerMachine

if TYPE_CHECKING:
    from docker import DockerClient


class DockerSandbox:
    """Implements `wer.contracts.Sandbox`, the stronger tier."""

    def unavailable(self) -> str | None:
        """Ask the daemon in about a second; a daemon of another machine will not do either."""
        return daemon.problem()

    async def start(self, spec: SandboxSpec, workers: int) -> Pool:
        """Build the image once for equal specs, and start a container a worker.

        Raises:
            SandboxError: With ``cause="start"``.
        """
        problem = await asyncio.to_thread(daemon.problem)
        if problem is not None:
            raise SandboxError(problem, cause="start")
        from requests.exceptions import RequestException

        client = await asyncio.to_thread(_connect)
        try:
            image = await asyncio.to_thread(lambda: images.build(client, spec, recipe.folders(spec)))
            return await WorkerPool.start(spec, ContainerLauncher(spec, client, image), workers)
        except BaseException as error:
            client.close()
            if isinstance(error, ConnectionError | RequestException):
                raise _gone(error) from error
            raise

    def reap(self) -> Sequence[str]:
        """Remove containers and socket folders of dead drivers."""
        with contextlib.closing(_connect()) as client:
            return [*labels.reap(client), *reap_folders()]


def _connect() -> DockerClient:
    from docker.errors import DockerException

    try:
        return daemon.connect()
    except (DockerException, OSError) as error:
        raise _gone(error) from error


def _gone(error: Exception) -> SandboxError:
    return SandboxError(f"the Docker daemon stopped answering: {error}", cause="start")


class ContainerLauncher:
    """Implements `wer.sandboxing.machines.Launcher`."""

    shared = True
    isolation = "docker (no network, read-only, no capabilities, user 65534)"

    def __init__(self, spec: SandboxSpec, client: DockerClient, image: str) -> None:
        self._spec = spec
        self._client = client
        self._image = image

    async def launch(self, folder: Path, key: str) -> Machine:
        """Start a container whose worker dials the folder's socket; see `Launcher`."""
        return await ContainerMachine.start(self._client, self._image, self._spec, folder, key)

    async def close(self) -> None:
        """Close the connection to the daemon that all containers of the pool share."""
        await asyncio.to_thread(self._client.close)
