"""One worker: loads the domain, then forks, watches and kills episodes as the host asks.

The host's orders arrive on the control connection as ``{"fork": KEY}`` and
``{"kill": KEY}``; the worker tells it ``{"ended": KEY, ...}`` with the last words of the
child. When the connection drops, the host is gone and the worker leaves with everything
it started.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wer_sandbox import companion, confine, domains, episode, memory, wire

LAST_WORDS = 4096
"""Bytes of a child's output that are kept."""


class Child:
    """A running episode as its worker knows it."""

    def __init__(self, lease: str, pid: int, output: int, folder: str) -> None:
        self.lease = lease
        self.pid = pid
        self.output = output
        self.folder = folder
        self.words = b""

    def listen(self) -> bool:
        """Keep the newest output; False when there is none to read now or ever again."""
        try:
            news = os.read(self.output, 65536)
        except BlockingIOError:
            return False
        self.words = (self.words + news)[-LAST_WORDS:]
        return bool(news)


def run(
    domain: str, socket_path: str, key: str, episode_memory_bytes: int, disk_bytes: int, host_pid: int
) -> None:
    """Be a worker until the host hangs up."""
    if host_pid:
        confine.die_with_parent(host_pid)
    os.dup2(2, 1)  # what the domain prints is no part of the protocol
    control = _dial(socket_path)
    control.sendall(wire.encode({"key": key}))
    try:
        loaded = domains.load(domain)
        confinement = confine.Confinement()
        if disk_bytes:
            confinement.require_companions()
    except Exception:
        control.sendall(wire.encode({"failed": traceback.format_exc()[-8000:]}))
        sys.exit(1)
    worker = Worker(loaded, control, socket_path, confinement, episode_memory_bytes, disk_bytes)
    gc.collect()
    gc.freeze()  # children then share these pages for good
    worker.run()


def _dial(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


class Worker:
    """The loop between one host and its episodes."""

    def __init__(
        self,
        domain: Any,
        control: socket.socket,
        socket_path: str,
        confinement: confine.Confinement,
        memory_bytes: int,
        disk_bytes: int,
    ) -> None:
        self._domain = domain
        self._control = control
        self._socket_path = socket_path
        self._confinement = confinement
        self._memory_bytes = memory_bytes
        self._disk_bytes = disk_bytes
        self._children: dict[int, Child] = {}
        self._orders = b""
        self._kills_by_kernel = memory.kills()
        self._events = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve until the host hangs up."""
        heard, woken = socket.socketpair()
        heard.setblocking(False)
        woken.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

        def bury() -> None:
            heard.recv(4096)
            self._bury()

        self._watch(heard, bury)
        self._watch(self._control, self._obey)
        self._tell({"ready": True})
        while True:
            for event, _ in self._events.select():
                event.data()

    def _watch(self, source: Any, then: Callable[[], None]) -> None:
        self._events.register(source, selectors.EVENT_READ, then)

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(wire.encode(message))
        except OSError:
            self._leave()

    def _leave(self) -> None:
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        os._exit(0)

    def _obey(self) -> None:
        news = self._control.recv(65536)
        if not news:
            self._leave()
        *orders, self._orders = (self._orders + news).split(b"\n")
        for order in map(wire.decode, orders):
            if "fork" in order:
                self._fork(order["fork"])
            else:
                self._kill(order["kill"])

    def _fork(self, lease: str) -> None:
        try:
            folder = companion.make_folder(Path(self._socket_path).parent) if self._disk_bytes else ""
            connection = _dial(self._socket_path)
            output, stderr = os.pipe()
            pid = os.fork()
        except OSError as error:
            self._tell({"ended": lease, "why": f"cannot fork: {error}", "words": "", "out_of_memory": False})
            return
        if pid == 0:
            self._be(connection, stderr, lease, folder)
        connection.close()
        os.close(stderr)
        os.set_blocking(output, False)
        child = self._children[pid] = Child(lease, pid, output, folder)

        def listen() -> None:
            # a burial in the same round of events has closed the pipe already
            if pid in self._children and not child.listen():
                self._events.unregister(output)

        self._watch(output, listen)

    def _be(self, connection: socket.socket, stderr: int, lease: str, folder: str) -> None:
        status = 1
        try:
            episode.live(
                self._domain,
                self._confinement,
                connection,
                stderr=stderr,
                lease=lease,
                memory_bytes=self._memory_bytes,
                folder=folder,
                disk_bytes=self._disk_bytes,
            )
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _kill(self, lease: str) -> None:
        for child in self._children.values():
            if child.lease == lease:
                os.kill(child.pid, signal.SIGKILL)

    def _bury(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid)
            if child.folder:
                companion.remove_folder(child.folder)
            self._tell(
                {
                    "ended": child.lease,
                    "why": _cause_of_death(status),
                    "words": self._last_words(child),
                    "out_of_memory": self._starved(status),
                }
            )

    def _last_words(self, child: Child) -> str:
        while child.listen():
            pass
        with contextlib.suppress(KeyError):
            self._events.unregister(child.output)
        os.close(child.output)
        return child.words.decode(errors="replace")

    def _starved(self, status: int) -> bool:
        before, self._kills_by_kernel = self._kills_by_kernel, memory.kills()
        return os.WIFSIGNALED(status) and self._kills_by_kernel > before


def _cause_of_death(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit status {os.WEXITSTATUS(status)}"
