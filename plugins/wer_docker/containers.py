"""One worker as a container that can reach nothing but one socket of the host."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wer.errors import SandboxError
from wer.records import SandboxSpec
from wer.sandboxing.machines import Death, unbroken
from wer.sandboxing.rendezvous import SOCKET
from wer_docker import daemon, labels

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_CALL_IN = "/run/wer"
_EPISODES = "/run/episodes"
_POLL_S = 0.25
PATIENCE_S = 30.0
"""A daemon that is restarted, for an update of its own, is back by then."""
_SETTLE_S = 1.0
_STOPPED = ("exited", "dead", "removing")
_STARTS = threading.BoundedSemaphore(4)
"""A daemon that starts many containers at once answers too late."""


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
            return cls(await unbroken(starting))
        except asyncio.CancelledError:
            if starting.exception() is None:
                await cls(starting.result()).remove()
            raise
        except (DockerException, OSError) as error:
            story = f"a container of the sandbox {spec.name!r} cannot be started: {error}"
            raise SandboxError(story, cause="start") from error

    async def ended(self) -> None:
        """Return when the container has stopped or is gone, up to a quarter of a second late."""
        while await asyncio.to_thread(self._state) is not None:  # noqa: ASYNC110 - the daemon has no event for us
            await asyncio.sleep(_POLL_S)

    async def autopsy(self) -> Death:
        """Ask the daemon how it ended, before `remove` takes its log away."""
        return await asyncio.to_thread(self._autopsy)

    async def remove(self) -> None:
        """Kill and remove the container, even while the waiting task is cancelled."""
        await unbroken(asyncio.to_thread(remove, self._container))

    def _state(self) -> dict[str, Any] | None:
        """The daemon's account of a container that runs; None once it has stopped or gone."""
        from docker.errors import NotFound

        daemon.knock()
        try:
            self._container.reload()
        except NotFound:
            return None
        return None if self._container.status in _STOPPED else self._container.attrs["State"]

    def _autopsy(self) -> Death:
        from docker.errors import DockerException, NotFound

        settled = time.monotonic() + _SETTLE_S
        try:
            while self._state() is not None and time.monotonic() < settled:
                time.sleep(_POLL_S / 5)
            self._container.reload()
            words = self._container.logs(stdout=False, tail=50)[-8192:].decode(errors="replace")
        except NotFound:
            return Death("dead", "its container was removed from outside", "")
        except (DockerException, OSError) as error:
            return Death("dead", f"the Docker daemon cannot say why ({error})", "")
        state = self._container.attrs["State"]
        if self._container.status not in _STOPPED:
            return Death("hung", f"its container is {self._container.status} but does not answer", words)
        if state.get("OOMKilled"):
            return Death("out_of_memory", "its container ran out of memory", words)
        return Death("dead", f"its container ended with exit status {state.get('ExitCode')}", words)


def remove(container: Container, *, patience_s: float | None = None) -> None:
    """Kill and remove a container, whatever its state; nothing happens when it is gone.

    Args:
        patience_s: How long to wait for a daemon that is being restarted; as a rule half a minute.

    Raises:
        SandboxError: The daemon refused, or stayed away. The container is then left to the next run.
    """
    from docker.errors import APIError, NotFound

    until = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
    while True:
        try:
            daemon.knock()
            container.remove(force=True, v=True)
            return
        except NotFound:
            return
        except APIError as error:
            if "already in progress" in str(error):
                return
            raise SandboxError(f"{_left(container)}: {error}", cause="daemon") from error
        except OSError as error:
            if time.monotonic() > until:
                story = f"{_left(container)}, since no Docker daemon answers ({error})"
                raise SandboxError(f"{story}. Start it: systemctl start docker.", cause="daemon") from error
            time.sleep(_POLL_S)


def _left(container: Container) -> str:
    return f"the container {container.short_id} can't be removed now, and the next run removes it"


def _run(client: DockerClient, image: str, spec: SandboxSpec, folder: Path, key: str) -> Container:
    with _STARTS:
        container = client.containers.create(image, **_settings(spec, folder, key))
        try:
            container.start()
        except BaseException:
            remove(container)
            raise
        return container


def _settings(spec: SandboxSpec, folder: Path, key: str) -> dict[str, Any]:
    from docker.types import LogConfig, Mount, Ulimit

    return {
        "command": [
            *("--domain", spec.domain),
            *("--connect", f"{_CALL_IN}/{SOCKET}"),
            *("--episode-memory", str(spec.episode_memory_bytes)),
            *("--disk", str(spec.disk_bytes)),
        ],
        "environment": _environ(spec, key),
        "labels": labels.mine(),
        "mounts": [Mount(_CALL_IN, str(folder), type="bind", read_only=True)],
        "network_mode": "none",
        "ipc_mode": "none",
        "user": "65534:65534",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": _tmpfs(spec),
        "mem_limit": spec.memory_bytes,
        "memswap_limit": spec.memory_bytes,
        "pids_limit": spec.pids,
        "nano_cpus": 1_000_000_000,
        "ulimits": [Ulimit(name="core", soft=0, hard=0), Ulimit(name="nofile", soft=1024, hard=1024)],
        # Bounded, since a flood of output would fill the host's disk; kept, for an autopsy.
        "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        "init": True,
    }


def _tmpfs(spec: SandboxSpec) -> dict[str, str]:
    """Files that may be written, in memory. Companions' together may have all of it: none starves the others."""
    safe = "noexec,nosuid,nodev"
    mounts = {"/tmp": f"size=16m,mode=1777,{safe}"}  # noqa: S108 - the container's own
    if spec.disk_bytes:
        mounts[_EPISODES] = f"size={spec.memory_bytes},mode=0700,uid=65534,gid=65534,{safe}"
    return mounts


def _environ(spec: SandboxSpec, key: str) -> dict[str, str]:
    return {
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",  # an episode may start no thread
        "OPENBLAS_NUM_THREADS": "1",
        **({"TMPDIR": _EPISODES} if spec.disk_bytes else {}),
        **spec.environ,
        "WER_SANDBOX_KEY": key,
    }
