"""Where sandboxes call in: a Unix socket of the host, which answers only to one-time keys.

The sandbox dials the host and not the other way round, so that a container's only way
out is a socket in a folder that it can't write.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
from pathlib import Path
from weakref import WeakSet

from attrs import frozen

from wer.sandboxing.lines import Connection, Message
from wer.sandboxing.scratch import scratch_folder

SOCKET = "host.sock"
_INTRODUCTION_S = 10.0


@frozen
class Caller:
    """A connection that showed an expected key, and what it said with it."""

    connection: Connection
    hello: Message


class Rendezvous:
    """One pool's socket, in a folder of its own under the temporary folder.

    Attributes:
        folder: Holds the socket and a note of who owns it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: asyncio.Server | None = None
        self._expected: dict[str, asyncio.Future[Caller]] = {}
        self._strangers: set[Connection] = set()
        self._everyone: WeakSet[Connection] = WeakSet()

    @classmethod
    async def open(cls, *, shared: bool) -> Rendezvous:
        """Make the folder and listen.

        Args:
            shared: True when other users (a container's) must be able to connect.
        """
        meeting = cls(scratch_folder("sandbox"))
        path = str(meeting.folder / SOCKET)
        loop = asyncio.get_running_loop()
        meeting._server = await loop.create_unix_server(meeting._answer, path, backlog=256)
        if shared:
            _let_others_in(meeting.folder)
        return meeting

    def expect(self) -> tuple[str, asyncio.Future[Caller]]:
        """Make a key, and a promise of the one caller who will show it."""
        key = secrets.token_hex(16)
        promise = self._expected[key] = asyncio.get_running_loop().create_future()
        promise.add_done_callback(lambda _: self._expected.pop(key, None))
        return key, promise

    async def close(self) -> None:
        """Stop listening, end every connection and remove the folder.

        That includes one that is only being made, and one whose promise nobody awaits any more.
        """
        if self._server is not None:
            self._server.close()
        for promise in tuple(self._expected.values()):
            promise.cancel()
        for connection in tuple(self._everyone):
            connection.hang_up()
        for _ in range(3):  # asyncio closes an aborted connection in its next turns
            await asyncio.sleep(0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answer(self) -> Connection:
        stranger = Connection(self._introduce)
        self._strangers.add(stranger)
        self._everyone.add(stranger)
        stranger.lost = lambda problem: self._strangers.discard(stranger)
        asyncio.get_running_loop().call_later(_INTRODUCTION_S, self._turn_away, stranger)
        return stranger

    def _turn_away(self, stranger: Connection) -> None:
        if stranger in self._strangers:
            stranger.hang_up()

    def _introduce(self, stranger: Connection, hello: Message) -> None:
        promise = self._expected.get(str(hello.get("key")))
        self._strangers.discard(stranger)
        stranger.hold()
        if promise is None or promise.done():
            stranger.hang_up()
        else:
            promise.set_result(Caller(stranger, hello))


def _let_others_in(folder: Path) -> None:
    """To connect, and not to list: the keys decide who is heard."""
    (folder / SOCKET).chmod(0o666)
    folder.chmod(0o711)
