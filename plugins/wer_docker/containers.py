"""One worker as a container that can reach nothing but one socket of the host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wer.errors import SandboxError
from wer.records import SandboxSpec
from wer.sandboxing.machines import Death
from wer.sandboxing.owners import Owner
from wer.sandboxing.rendezvous import SOCKET

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

MANAGED = "wer.managed"
DEADLINE = "wer.deadline"
_CALL_IN = "/run/wer"
_DEADLINE_S = 14 * 24 * 3600
_POLL_S = 0.25
_STOPPED = ("exited", "dead", "removing")


class ContainerMachine:
    """Implements `wer.sandboxing.machines.Machine`."""

    def __init__(self, container: Container) -> None:
        self._container = container

    @classmethod
    async def start(
        cls, client: DockerClient, image: str, spec: SandboxSpec, folder: Path, key: str
    ) -> ContainerMachine:
        """Create and start a container.

        Raises:
            SandboxError: With ``cause="start"``: the daemon refused.
        """
        from docker.errors import DockerException

        starting = asyncio.ensure_future(asyncio.to_thread(_run, client, image, spec, folder, key))
        try:
            return cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            machine = cls(await starting)  # a thread can't be cancelled, and its container must not stay
            await machine.remove()
            raise
        except (DockerException, OSError) as error:
            raise SandboxError(
                f"a container of {spec.name!r} cannot be started: {error}", cause="start"
            ) from error

    async def ended(self) -> None:
        while await asyncio.to_thread(self._status) not in _STOPPED:
            await asyncio.sleep(_POLL_S)

    async def autopsy(self) -> Death:
        return await asyncio.to_thread(self._autopsy)

    async def remove(self) -> None:
        await asyncio.shield(asyncio.to_thread(self._remove))

    def _status(self) -> str:
        from docker.errors import NotFound

        try:
            self._container.reload()
        except NotFound:
            return "removing"
        return str(self._container.status)

    def _autopsy(self) -> Death:
        from docker.errors import DockerException, NotFound

        try:
            state = self._container.wait_for_end() 
        except NotFound:
            return Death("dead", "its container was removed by somebody else", "")
        except (DockerException, OSError) as error:
            return Death("dead", f"the Docker daemon does not answer ({error})", "")

    def _remove(self) -> None:
        from docker.errors import APIError, NotFound
        ...


def _run(client: DockerClient, image: str, spec: SandboxSpec, folder: Path, key: str) -> Container:
    """Create and start; on failure nothing stays."""
