"""Reaching the Docker daemon, or saying in a moment why not and what to do."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import DockerClient

_VERSION = "1.41"
_KNOCK_S = 0.8
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
    where = _where()
    try:
        version = _ask_version(where)
    except PermissionError:
        remedy = "Join its group: sudo usermod -aG docker $USER, and log in again"
        return f"this user may not talk to the Docker daemon at {where}. {remedy}"
    except (docker.errors.DockerException, OSError) as error:
        return (
            f"no Docker daemon answers at {where} ({error}). Start it (systemctl start docker), "
            "point DOCKER_HOST to it, or use --sandbox process"
        )
    if tuple(map(int, version.split("."))) < tuple(map(int, _VERSION.split("."))):
        return (
            f"the Docker daemon speaks API {version}, WER needs {_VERSION}. Update Docker to 20.10 or newer"
        )
    return None


def knock() -> None:
    """See that somebody listens, before the Docker SDK, which leaves its socket open when nobody does.

    Raises:
        OSError: Nobody does.
    """
    with socket.socket(socket.AF_UNIX) as first:
        first.settimeout(_KNOCK_S)
        first.connect(_where().removeprefix("unix://"))


def _where() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def _ask_version(where: str) -> str:
    """Ask for the version of the daemon's API; the SDK is told one, or it would ask while it is being made."""
    import docker

    knock()
    with contextlib.closing(docker.DockerClient(where, version=_VERSION, timeout=_KNOCK_S)) as client:
        return str(client.api.version(api_version=False)["ApiVersion"])
