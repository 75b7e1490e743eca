"""The client's half of MCP over stdio: JSON-RPC 2.0, one message a line.

The protocol's own words: https://modelcontextprotocol.io/specification/2025-06-18 (basic,
lifecycle, transports, tools).
"""

from __future__ import annotations

import json
import select
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wer_sandbox.companion import Companion

VERSION = "2025-06-18"
MAX_LINE = 16 << 20
"""Bytes; a server that writes more without an end of line is given up."""

CPU_LIMIT_S = 5.0
"""CPU seconds of one request; CPU, so that a busy machine changes no observation."""

_METHOD_NOT_FOUND = -32601
_LOOK_S = 0.25


class RefusedError(Exception):
    """The server answered a request with an error."""


class GoneError(Exception):
    """The server hung up, or can't be understood any more."""


class Client:
    """Asks one request at a time, and waits for its answer whatever else the server says meanwhile."""

    def __init__(self, companion: Companion) -> None:
        self._companion = companion
        self._line = companion.line
        self._cpu_s = 0.0
        self._rest = bytearray()
        self._count = 0

    def open(self) -> dict[str, Any]:
        """Shake hands; what the server says of itself."""
        about = {"name": "wer", "version": "1"}
        hello = self.request(
            "initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        )
        self._say({"method": "notifications/initialized"})
        return hello

    def tools(self) -> list[dict[str, Any]]:
        """All tools on offer, page by page."""
        tools: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        while True:
            answer = self.request("tools/list", page)
            tools += answer["tools"]
            if not answer.get("nextCursor"):
                return tools
            page = {"cursor": answer["nextCursor"]}

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask, and give the result.

        Raises:
            RefusedError: With the server's message.
            GoneError: With the reason.
        """
        self._count += 1
        self._cpu_s = self._companion.cpu_s()
        self._say({"id": self._count, "method": method, "params": params})
        while True:
            message = self._hear()
            if "method" in message and "id" in message:
                self._serve(message)
            elif message.get("id") == self._count and isinstance(message.get("error"), dict):
                raise RefusedError(str(message["error"].get("message")))
            elif message.get("id") == self._count and isinstance(message.get("result"), dict):
                return dict(message["result"])

    def _serve(self, message: dict[str, Any]) -> None:
        """Answer what the server asks: that we are there, and that we offer nothing else."""
        if message["method"] == "ping":
            self._say({"id": message["id"], "result": {}})
        else:
            error = {"code": _METHOD_NOT_FOUND, "message": "this client offers nothing"}
            self._say({"id": message["id"], "error": error})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._line.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except OSError:
            raise GoneError("it hung up") from None

    def _hear(self) -> dict[str, Any]:
        """The next line that is a message. Others are skipped, as the protocol's own client does: many
        servers greet or log on their standard output, though they must not.
        """
        while True:
            line = self._read_line()
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                return message

    def _read_line(self) -> bytes:
        searched = 0
        while (end := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if searched > MAX_LINE:
                raise GoneError(f"it wrote a line of more than {MAX_LINE} bytes")
            self._rest += self._read()
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def _read(self) -> bytes:
        while not select.select([self._line], [], [], _LOOK_S)[0]:
            self._look()
        self._look()
        try:
            news = self._line.recv(1 << 16)
        except OSError:
            news = b""
        if not news:
            raise GoneError("it hung up")
        return news

    def _look(self) -> None:
        if self._companion.cpu_s() - self._cpu_s > CPU_LIMIT_S:
            raise GoneError(f"a request took more than {CPU_LIMIT_S:g} CPU seconds")
