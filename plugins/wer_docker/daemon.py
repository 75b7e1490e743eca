"""Reaching the Docker daemon, or saying in a moment why not and what to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import DockerClient

OLDEST_API = (1, 41)
_KNOCK_S = 1.5
_WORK_S = 60


def connect(timeout_s: float = _WORK_S) -> DockerClient:
    """Connect to the daemon of ``DOCKER_HOST``, or to the machine's own.

    Raises:
        docker.errors.DockerException: Nobody answers.
    """
    import docker

    return docker.from_env(timeout=timeout_s)


def problem() -> str | None:
    """Say why containers can't be used here, and what to do; None when they can."""
    host = os.environ.get("DOCKER_HOST", "")
    if sys.platform != "linux" or (host and not host.startswith("unix://")):
        return (
            "the docker sandbox needs Linux and a daemon on this machine, since containers dial a Unix "
            f"socket of the host (DOCKER_HOST is {host!r}). Unset DOCKER_HOST, or use --sandbox process"
        )
    try:
        import docker
    except ImportError:
        return "the Docker SDK is missing. Install it: pip install 'wer-skills[docker]'"
    try:
        client = connect(_KNOCK_S)
        try:
            version = str(client.version()["ApiVersion"])
        finally:
            client.close()
    except docker.errors.DockerException as error:
        return _silence(error, host)
    except OSError as error:  # requests' own time-out
        return _silence(error, host)
    if tuple(map(int, version.split("."))) < OLDEST_API:
        oldest = ".".join(map(str, OLDEST_API))
        return f"the Docker daemon speaks API {version}, WER needs {oldest}. Update Docker to 20.10 or newer"
    return None


def _silence(error: Exception, host: str) -> str:
    where = host or "unix:///var/run/docker.sock"
    if "Permission denied" in str(error):
        remedy = "Join its group: sudo usermod -aG docker $USER, and log in again"
        return f"this user may not talk to the Docker daemon at {where}. {remedy}"
    return (
        f"no Docker daemon answers at {where} ({error}). Start it (systemctl start docker), "
        "point DOCKER_HOST to it, or use --sandbox process"
    )
