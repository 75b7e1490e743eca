"""A domain around a domain, for checks: tries what an episode may not do, and notes what the inner one tries."""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from wer_sandbox import domains

PROBED = "WER_PROBED"
"""The environment variable that names the inner domain, ``module:factory``."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
)
_NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
_HARMLESS_DATABASES = (":memory:", "mode=memory", "mode=ro")
_MOST = 20
_FOLDERS = ("/dev/shm", "/var/tmp", ".", "/tmp")  # noqa: S108 - to be refused


class Probe:
    """Counts, breaks and tries its limits: all that a sandbox is asked about when no domain is at hand."""

    exposed: ClassVar[tuple[str, ...]] = ("wer_limits", "wer_count", "wer_die", "wer_hang", "wer_raise")

    def __init__(self) -> None:
        self._count = 0

    def wer_limits(self) -> dict[str, str]:
        """Try to write, to connect and to start a process.

        Returns:
            By what was tried: the name of the error that refused it, or nothing when it worked.
        """
        return {
            "write a file": _outcome(_write),
            "open a network connection": _outcome(_connect),
            "start a process": _outcome(_fork),
        }

    def wer_count(self) -> int:
        """Count one up, in this episode alone."""
        self._count += 1
        return self._count

    def wer_die(self) -> None:
        """End the process as a crash does."""
        os._exit(1)

    def wer_hang(self) -> None:
        """Give no answer for an hour."""
        time.sleep(3600)

    def wer_raise(self) -> None:
        """Let an exception escape."""
        raise KeyError("a domain's own mistake")


class Attempts:
    """What code did that reaches beyond its process, heard from the interpreter itself."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._during = ""
        sys.addaudithook(self._hear)

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Note what the block tries."""
        self._during = what
        try:
            yield
        finally:
            self._during = ""

    def around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The same method, listened to."""

        def heard(**params: Any) -> Any:
            with self.during(f"in {name} {params.get('name') or ''}".rstrip()):
                return method(**params)

        return heard

    def all(self) -> list[str]:
        """A line for each thing that was tried, the first ones first."""
        return list(self._found)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._during and len(self._found) < _MOST:
            tried = attempt(event, arguments)
            if tried:
                self._found[f"{self._during}: {tried}"] = None


def attempt(event: str, arguments: tuple[Any, ...]) -> str:
    """Say what an audit event of Python means to the world outside the process; or nothing."""
    first = arguments[0] if arguments else ""
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        ours = str(first) in ("/dev/null", "") or isinstance(first, int) or "__pycache__" in str(first)
        return "" if ours else f"opened {os.fsdecode(first)!r} for writing"
    if event == "sqlite3.connect" and not any(words in str(first) for words in _HARMLESS_DATABASES):
        return f"opened the database {str(first)!r} for writing"
    if event in _CHANGES:
        return "" if "__pycache__" in str(first) else f"{event} {str(first)!r}"
    if event in _NETWORK:
        return f"{event} {first if isinstance(first, (str, bytes)) else arguments[1]!r}"
    return event if event in _STARTS else ""


def alone() -> Probe:
    """The factory of a probe without a domain."""
    return Probe()


def around() -> Any:
    """The factory of a probe around the domain that `PROBED` names: its methods, and the probe's."""
    attempts = Attempts()
    name = os.environ[PROBED]
    with attempts.during("while it was loaded"):
        inner = domains.load(name)
    exposed = type(inner).exposed
    body = {"exposed": (*exposed, *Probe.exposed, "wer_attempts")}
    probe = type("Around", (Probe,), body)()
    for each in exposed:
        setattr(probe, each, attempts.around(each, getattr(inner, each)))
    for each in ("accompany", "meet"):  # see `wer_sandbox.companion`
        if hasattr(inner, each):
            setattr(probe, each, getattr(inner, each))
    probe.wer_attempts = attempts.all
    return probe


def _outcome(attempted: Callable[[], object]) -> str:
    try:
        attempted()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return ""


def _write() -> None:
    """Write one byte, wherever that is possible."""
    *places, last = (Path(folder) / f"wer-probe-{os.getpid()}" for folder in _FOLDERS)
    for path in places:
        with suppress(OSError):
            return _keep_nothing(path)
    return _keep_nothing(last)


def _keep_nothing(path: Path) -> None:
    try:
        path.write_bytes(b"x")
    finally:
        with suppress(OSError):
            path.unlink()


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        with suppress(ConnectionRefusedError):  # somebody was there to refuse: the network is open
            connection.connect(("127.0.0.1", 9))


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
