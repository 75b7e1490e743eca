"""A chat-completions server in a process of its own that costs next to nothing: it waits, then says one thing.

Plain asyncio, because a web framework would take the CPU that the clients are measured on.
Prints its port, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys

REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "mock",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "I looked at the folder and moved the file. " * 8,
                },
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 80, "total_tokens": 1580},
    }
).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY
)


class Serving(asyncio.Protocol):
    """One connection, a request at a time."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: answer each whole request after the delay."""
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._heard = body[length:]
            asyncio.get_running_loop().call_later(self._delay_s, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)


async def main(delay_s: float) -> None:
    """Serve until the parent closes the pipe."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Serving(delay_s), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
