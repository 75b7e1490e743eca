"""One connection that carries JSON lines, seen from the host: whatever it says is hostile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from wer.records import JsonObject
from wer_sandbox import wire

Message = dict[str, Any]


class Connection(asyncio.Protocol):
    """Hand each message to `heard`, and say once on `lost` when there will be no more.

    A line that is too long or is no JSON object ends the connection.

    Attributes:
        heard: Called with each message.
        lost: Called once at the end, with "" or with what was wrong with the last line.
    """

    def __init__(self, heard: Callable[[Connection, Message], None]) -> None:
        self.heard = heard
        self.lost: Callable[[str], None] = lambda problem: None
        self.open = False
        self._unwanted = False
        self._problem = ""
        self._rest = bytearray()
        self._limit = 4096  # a stranger gets room for an introduction only
        self._held: list[Message] = []
        self._transport: asyncio.Transport

    def hold(self) -> None:
        """Keep what comes after the introduction until somebody trusts the connection."""
        self.heard = lambda connection, message: self._held.append(message)

    def trust(self, heard: Callable[[Message], None], lost: Callable[[str], None]) -> None:
        """Go on with these after the introduction."""
        self._limit = wire.MAX_LINE
        self.heard = lambda connection, message: heard(message)
        self.lost = lost
        held, self._held = self._held, []
        for message in held:
            heard(message)
        if not self.open:
            lost(self._problem)

    def say(self, message: JsonObject) -> None:
        """Send one message; nothing happens when the connection is gone.

        Raises:
            TypeError: The message is not JSON.
            ValueError: It is longer than a line may be.
        """
        line = wire.encode(dict(message))
        if self.open:
            self._transport.write(line)

    def hang_up(self, problem: str = "") -> None:
        """End the connection at once, or as soon as it is made."""
        self._unwanted = True
        if self.open:
            self._problem = self._problem or problem
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio once the other side is there: lines may be sent from now on."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.open = True
        if self._unwanted:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with any piece of the stream: deliver whole lines, hang up on one too long."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = bytes(self._rest) + end
            self._rest.clear()
            self._deliver(line)
        self._rest += rest
        if len(self._rest) > self._limit:
            self.hang_up(f"a line longer than {self._limit} bytes")

    def _deliver(self, line: bytes) -> None:
        if self._problem or not self.open:
            return
        if len(line) > self._limit:
            self.hang_up(f"a line longer than {self._limit} bytes")
            return
        try:
            message = wire.decode(line)
        except ValueError as error:
            self.hang_up(f"a line that cannot be read ({error})")
            return
        self.heard(self, message)

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio at the end, whoever hung up: tell the owner why."""
        self.open = False
        self.lost(self._problem)
