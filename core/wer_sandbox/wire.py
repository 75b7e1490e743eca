"""JSON lines: the one message format between host, worker and episode."""

from __future__ import annotations

import json
from typing import Any

MAX_LINE = 16 << 20
"""Bytes in one line, the newline included. Longer ones end the conversation."""


def encode(message: dict[str, Any]) -> bytes:
    """Write one message as one line.

    Raises:
        TypeError: The message holds something that JSON has no word for.
        ValueError: The line would be longer than `MAX_LINE`, or holds a cycle.
    """
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"a message of {len(line)} bytes is longer than {MAX_LINE}")
    return line


def decode(line: bytes) -> dict[str, Any]:
    """Read one message.

    Raises:
        ValueError: The line is not a JSON object (too deep a nesting included).
    """
    try:
        message = json.loads(line)
    except RecursionError:
        raise ValueError("the message is nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("the message is not a JSON object")
    return message
