"""A scriptable OpenAI-compatible server on the loopback interface, for tests.

Use it as an async context manager; answers come from a script, in order, and then from
`default`. Every request's body is recorded.

    async with MockOpenAI(says("hello"), fails(429, retry_after="2"), calls("ls", {"a": True})) as mock:
        model = ServedModel(name="m", url=mock.url, dialect=Dialect(provider="openai"))
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

Body = Mapping[str, Any]
Scripted = Callable[[Body], "web.StreamResponse | Awaitable[web.StreamResponse]"]


def says(text: str | None, *, finish: str = "stop", **usage: Any) -> Scripted:
    """Answer with a message; ``usage`` overrides the usual numbers."""
    return answers({"role": "assistant", "content": text}, finish=finish, **usage)


def calls(
    name: str, arguments: Mapping[str, Any] | str, *, text: str | None = None, id: str = "call_1"
) -> Scripted:
    """Answer with one tool call; arguments as a string are sent as they are, decodable or not."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": raw}}
    return answers({"role": "assistant", "content": text, "tool_calls": [call]}, finish="tool_calls")


def answers(message: Mapping[str, Any], *, finish: str = "stop", **usage: Any) -> Scripted:
    """Answer with any message."""
    return sends_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, **usage},
        }
    )


def sends_json(wire: Any, *, status: int = 200) -> Scripted:
    """Answer with any JSON."""
    return lambda _: web.json_response(wire, status=status)


def sends_bytes(body: bytes, *, status: int = 200, content_type: str = "application/json") -> Scripted:
    """Answer with any bytes: garbage, truncated JSON, an HTML page."""
    return lambda _: web.Response(body=body, status=status, content_type=content_type)


def fails(
    status: int, *, message: str = "no", code: str | None = None, retry_after: str | None = None
) -> Scripted:
    """Refuse, as OpenAI's API words it."""
    wire = {"error": {"message": message, "type": "error", "code": code}}
    headers = {"Retry-After": retry_after} if retry_after is not None else {}
    return lambda _: web.json_response(wire, status=status, headers=headers)


def hangs() -> Scripted:
    """Accept the request and never answer."""

    async def wait(_: Body) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return wait


class _ResetError(Exception):
    pass


def resets() -> Scripted:
    """Drop the connection without an answer."""

    def drop(_: Body) -> web.StreamResponse:
        raise _ResetError

    return drop


def breaks_off(sent: bytes = b'{"choices": [', *, promised: int = 10_000) -> Scripted:
    """Promise a long body, send a beginning, drop the connection."""
    return lambda _: _Broken(sent, promised)


class _Broken(web.Response):
    def __init__(self, sent: bytes, promised: int) -> None:
        super().__init__(status=200)
        self.sent, self.promised = sent, promised


class MockOpenAI:
    """The server.

    Args:
        script: Answers, one a request.
        default: Answers every request after the script; may look at the body. None: 500.
        delay_s: Wait before each answer.
        port: Of the loopback interface; 0 is any.

    Attributes:
        requests: The JSON bodies, in order of arrival.
        headers: The headers, likewise.
        most_at_once: The most requests that were open at the same time.
    """

    def __init__(
        self, *script: Scripted, default: Scripted | None = None, delay_s: float = 0.0, port: int = 0
    ) -> None:
        self.script = deque(script)
        self.default = default or fails(500, message="the mock's script is at its end")
        self.delay_s = delay_s
        self.port = port
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.most_at_once = 0
        self._open = 0
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> MockOpenAI:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._serve)
        app.router.add_get("/health", self._health)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            scripted = self.script.popleft() if self.script else self.default
            try:
                response = scripted(body)
                if inspect.isawaitable(response):
                    response = await response
            except _ResetError:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            if isinstance(response, _Broken):
                stream = web.StreamResponse(headers={"Content-Length": str(response.promised)})
                await stream.prepare(request)
                await stream.write(response.sent)
                assert request.transport is not None
                request.transport.abort()
                return stream
            return response
        finally:
            self._open -= 1
