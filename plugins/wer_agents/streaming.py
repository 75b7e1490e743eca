"""A streamed chat completion as it passes by: handed on event by event, and put together beside that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import define, field

from wer.chat import reply_from_wire
from wer.errors import ModelUnavailable
from wer.records import Json, Reply

_BLANK = re.compile(rb"\r?\n\r?\n")


@define(kw_only=True, eq=False)
class Stream:
    """One answer, sent as server-sent events.

    Attributes:
        quiet: Whether the event that only brings the usage is kept back, because the client
            did not ask for it.
        limit: Bytes after which it is given up.
    """

    quiet: bool
    limit: int
    _rest: bytes = b""
    _size: int = 0
    _text: list[str] = field(factory=list)
    _calls: dict[int, dict[str, str]] = field(factory=dict)
    _finish: str = ""
    _usage: Json = None
    _problem: str = ""

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes in; give those that the client is to have now.

        Raises:
            ModelUnavailable: It is longer than the limit.
        """
        self._size += len(chunk)
        if self._size > self.limit:
            raise ModelUnavailable(f"the model's server streamed more than {self.limit >> 20} MiB")
        self._rest += chunk
        passing = b""
        while found := _BLANK.search(self._rest):
            event, self._rest = self._rest[: found.end()], self._rest[found.end() :]
            if self._note(event):
                passing += event
        return passing

    def reply(self) -> Reply:
        """All of it, as if it had not been streamed.

        Raises:
            ModelUnavailable: It broke off, or the server sent an error in its midst.
        """
        if self._problem or not self._finish:
            raise ModelUnavailable(f"the model's server broke off its stream{self._problem}")
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items())
        ]
        message = {"content": "".join(self._text), "tool_calls": calls}
        choices = [{"message": message, "finish_reason": self._finish}]
        return reply_from_wire({"choices": choices, "usage": self._usage}, usd=None)

    def _note(self, event: bytes) -> bool:
        """Read one event; say whether it is passed on."""
        lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
        try:
            wire = json.loads(b"\n".join(lines))
        except (ValueError, RecursionError):
            return True  # [DONE], a comment, or something that the client may understand
        if not isinstance(wire, Mapping):
            return True
        if wire.get("error"):
            self._problem = f": {str(wire['error'])[:300]}"
        self._usage = wire.get("usage") or self._usage
        choices = wire.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, Mapping) and not choice.get("index"):
                self._take(choice)
        return not (self.quiet and choices == [] and wire.get("usage"))

    def _take(self, choice: Mapping[str, Json]) -> None:
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return
        if isinstance(delta.get("content"), str):
            self._text.append(delta["content"])
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else []:
            if isinstance(piece, Mapping) and isinstance(piece.get("index", 0), int):
                self._extend(piece)

    def _extend(self, piece: Mapping[str, Json]) -> None:
        """Add a piece to the call that it belongs to."""
        call = self._calls.setdefault(piece.get("index", 0), {"id": "", "name": "", "arguments": ""})
        function = piece.get("function")
        call["id"] = call["id"] or str(piece.get("id") or "")
        if isinstance(function, Mapping):
            call["name"] += str(function.get("name") or "")
            call["arguments"] += str(function.get("arguments") or "")
