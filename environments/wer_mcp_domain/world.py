"""One episode's world: an MCP server of its own, whose tools the agent calls by name."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wer_mcp_domain.client import Client, GoneError, RefusedError

if TYPE_CHECKING:
    from wer_mcp_domain.program import Program
    from wer_sandbox.companion import Companion

TEXT_LIMIT = 1_000_000
"""Characters of one result that an agent can be shown."""

_SIZE = 8


class World:
    """The server behind one task.

    Made once in the worker; every episode is a fork of it, and begins with `reset`. A server that
    ends in the course of a call has answered for good: the agent's arguments ended it, and every
    later call is told so. Only one that never got ready, or that something outside killed, is the
    machine's failure, and ends the episode.
    """

    exposed: ClassVar[tuple[str, ...]] = ("reset", "call", "export")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._companion: Companion
        self._client: Client
        self._over = ""

    def accompany(self) -> None:
        """Be the server, once its files are there; see `wer_sandbox.companion`."""
        for name, content in json.loads(_read(int.from_bytes(_read(_SIZE), "big"))).items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content))
        self._program.run()

    def meet(self, companion: Companion) -> None:
        """Take the server's line; see `wer_sandbox.companion`."""
        self._companion = companion

    def reset(
        self, files: Mapping[str, str], calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> dict[str, Any]:
        """Start the server in a folder with these files, and bring it where the task begins.

        Args:
            files: Contents in base64, by path in the folder.

        Returns:
            ``problem``: which of the calls failed and how, or None.
        """
        self.open(files)
        for name, arguments in calls:
            answer = self.call(name, arguments)
            if not answer["ok"]:
                return {"problem": f"{name} {json.dumps(arguments)} answered: {answer['text']}"}
        return {"problem": None}

    def open(self, files: Mapping[str, str]) -> dict[str, Any]:
        """Start the server in a folder with these files.

        Returns:
            What it says of itself in answer to ``initialize``.

        Raises:
            SystemExit: It did not start.
        """
        placed = json.dumps(dict(files)).encode()
        self._companion.line.sendall(len(placed).to_bytes(_SIZE, "big") + placed)
        self._client = Client(self._companion)
        try:
            return self._client.open()
        except (GoneError, RefusedError) as error:
            raise SystemExit(f"the MCP server did not start: {self._how(error)}") from None

    def tools(self) -> list[dict[str, Any]]:
        """The server's tools as it lists them.

        Raises:
            SystemExit: It doesn't.
        """
        try:
            return self._client.tools()
        except (GoneError, RefusedError, KeyError) as error:
            raise SystemExit(f"the MCP server does not list its tools: {self._how(error)}") from None

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool; whatever goes wrong in it is the answer.

        Returns:
            ``text``, what the model reads; ``ok``, False where the server says so; and
            ``structured``, the result as JSON, or None where the server gives none.
        """
        if self._over:
            return _failed(self._over)
        try:
            result = self._client.request("tools/call", {"name": name, "arguments": dict(arguments)})
            text, structured = _text(result), result.get("structuredContent")
        except RefusedError as error:
            return _failed(str(error))
        except GoneError as error:
            self._over = f"the server is gone: {self._how(error)}"
            return _failed(self._over)
        except (AttributeError, KeyError, TypeError) as error:
            return _failed(f"the server's answer can't be read: {error!r}")
        if self._companion.used_bytes() > self._companion.disk_bytes:
            self._over = f"the server's files have more than {self._companion.disk_bytes} bytes"
            return _failed(self._over)
        if max(len(text), len(json.dumps(structured))) > TEXT_LIMIT:
            return _failed(f"the result has more than {TEXT_LIMIT} characters")
        return {"text": text, "ok": not result.get("isError"), "structured": structured}

    def export(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """What these calls answer now: the result as JSON where the server gives it so, else its text."""
        answers = [self.call(name, arguments) for name, arguments in calls]
        return [each["text"] if each["structured"] is None else each["structured"] for each in answers]

    def _how(self, error: Exception) -> str:
        """How the server ended, or what else was wrong with it.

        Raises:
            SystemExit: Something outside killed it, most likely for want of memory.
        """
        status = self._companion.ended() if isinstance(error, GoneError) else None
        if status is None:
            return str(error)
        if not os.WIFSIGNALED(status):
            return f"exit status {os.WEXITSTATUS(status)}"
        if os.WTERMSIG(status) == signal.SIGKILL:
            raise SystemExit("something outside killed the MCP server")
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"


def _read(size: int) -> bytes:
    """Read so much of the standard input and no more, since what follows is for the server."""
    found = b""
    while len(found) < size and (news := os.read(0, size - len(found))):
        found += news
    return found


def _text(result: Mapping[str, Any]) -> str:
    """The content as a model without eyes reads it."""
    parts = [_part(each) for each in result.get("content", ())]
    if not parts and result.get("structuredContent") is not None:
        return json.dumps(result["structuredContent"])
    return "\n".join(parts)


def _part(content: Mapping[str, Any]) -> str:
    kind = content["type"]
    if kind == "text":
        return str(content["text"])
    if kind == "resource" and "text" in content["resource"]:
        return str(content["resource"]["text"])
    if kind == "resource_link":
        return str(content["uri"])
    return f"[{kind}, {content.get('mimeType', 'of unknown type')}]"


def _failed(why: str) -> dict[str, Any]:
    return {"text": f"Error: {why}", "ok": False, "structured": None}
