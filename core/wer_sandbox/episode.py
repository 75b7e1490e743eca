"""One episode: a forked child that confines itself and then answers the host's requests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import traceback
from typing import Any, BinaryIO

from wer_sandbox import companion, domains, wire
from wer_sandbox.confine import Confinement


def live(
    domain: Any,
    confinement: Confinement,
    host: socket.socket,
    *,
    stderr: int,
    lease: str,
    memory_bytes: int,
    folder: str = "",
    disk_bytes: int = 0,
) -> None:
    """Serve one episode to its end; the caller leaves with ``os._exit`` afterwards.

    Args:
        host: A fresh connection to the host, not yet introduced.
        stderr: Where both output streams go.
        lease: The one-time key that introduces the connection.
        memory_bytes: How much the episode may add to the worker's address space.
        folder: Its companion's; "" when there is none.
        disk_bytes: How much the companion may write.
    """
    _forget_the_worker()
    connection = _keep_only(host, stderr, -1 if folder else confinement.rules)
    if folder:
        companion.start(domain, confinement, folder, disk_bytes=disk_bytes, memory_bytes=memory_bytes)
    layers = confinement.apply(memory_bytes, folder=folder)
    connection.sendall(wire.encode({"key": lease, "layers": layers}))
    with connection.makefile("rb") as lines:
        _answer(domain, lines, connection)


def _forget_the_worker() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _keep_only(host: socket.socket, stderr: int, rules: int) -> socket.socket:
    """Close every file but the connection, the output and the rules: siblings' pipes and sockets too.

    Args:
        rules: A file above 3, or -1.
    """
    for stream in (1, 2):
        os.dup2(stderr, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    kept = os.dup2(host.detach(), 3, inheritable=False)
    os.closerange(4, rules)
    os.closerange(max(4, rules + 1), os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=kept)


def _answer(domain: Any, lines: BinaryIO, connection: socket.socket) -> None:
    while line := lines.readline(wire.MAX_LINE + 1):
        request = wire.decode(line)
        connection.sendall(_reply(domain, request))


def _reply(domain: Any, request: dict[str, Any]) -> bytes:
    identity = request.get("id")
    try:
        result = domains.call(domain, request.get("method"), request.get("params") or {})
        return wire.encode({"id": identity, "result": result})
    except Exception as error:
        where = traceback.format_exc(limit=-8)[-4000:]
        message = "unprintable"
        with contextlib.suppress(Exception):
            message = str(error)[:2000]
        report = {"type": type(error).__name__, "message": message, "traceback": where}
        return wire.encode({"id": identity, "error": report})
