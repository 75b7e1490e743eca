"""Passes an agent's model calls on to the user's model server, as they are, and records them.

A server's refusal reaches the agent unchanged, who may try again. But an agent that goes on after
a model server's failure for now, or a bad key, is not the agent whose skill is measured: see `Proxy.blame`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import aiohttp
from aiohttp import web
from attrs import define

from wer.chat import reply_from_wire
from wer.errors import BudgetExhausted, InfrastructureError, ModelError, ModelUnavailable, WerError
from wer.records import Json, Reply, Usage
from wer.serving.answers import REPLY_CAP_BYTES, failure
from wer_agents.recording import Record
from wer_agents.streaming import Stream
from wer_agents.upstream import Upstream

_PASSED_ON = ("Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry", "X-Request-Id")
_ITS_OWN = frozenset({400, 413, 422})
"""Answers that say that a request was bad: the agent's own doing, and data like a wrong call."""


@define(kw_only=True, eq=False)
class Proxy:
    """The model server of one rollout.

    Attributes:
        check: Called before each call; raises `BudgetExhausted`.
        charge: Told what each call cost.
        spent: Why no call is made any more, or None.
    """

    upstream: Upstream
    record: Record
    client: aiohttp.ClientSession
    check: Callable[[], None]
    charge: Callable[[Usage], None]
    spent: BudgetExhausted | None = None
    _last: WerError | None = None

    def blame(self) -> WerError | None:
        """Why the rollout can't be judged, or None.

        Nothing is left to spend, or its last model call failed through no fault of the agent.
        """
        return self.spent or (self._last if isinstance(self._last, InfrastructureError) else None)

    async def models(self, request: web.Request) -> web.StreamResponse:
        """Pass on the list of models."""
        try:
            async with self.client.get(f"{self.upstream.url}/models", allow_redirects=False) as answer:
                body = await _whole(answer)
                return web.Response(status=answer.status, body=body, headers=_kept(answer))
        except (TimeoutError, aiohttp.ClientError, OSError, ModelError) as error:
            return self._broken(request, error)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Pass on one chat completion, streamed or not."""
        asked = await _object(request)
        try:
            self.check()
        except BudgetExhausted as error:
            self.spent = error
            return refusal(402, str(error))
        self.record.requested(asked["messages"])
        quiet = bool(asked.get("stream")) and not _wants_usage(asked)
        if quiet:
            options = asked.get("stream_options")
            asked["stream_options"] = {
                **(options if isinstance(options, Mapping) else {}),
                "include_usage": True,
            }
        try:
            async with self.client.post(
                f"{self.upstream.url}/chat/completions", json=asked, allow_redirects=False
            ) as answer:
                if answer.status == 200 and "event-stream" in answer.headers.get("Content-Type", ""):
                    return await self._stream(request, answer, Stream(quiet=quiet, limit=REPLY_CAP_BYTES))
                body = await _whole(answer)
                self._note(answer, body)
                return web.Response(status=answer.status, body=body, headers=_kept(answer))
        except asyncio.CancelledError:
            self.record.untold = True  # the agent hung up, and what the call cost is not known
            raise
        except (TimeoutError, aiohttp.ClientError, OSError, ModelError) as error:
            return self._broken(request, error)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, stream: Stream
    ) -> web.StreamResponse:
        passing = web.StreamResponse(headers=_kept(answer))
        await passing.prepare(request)
        try:
            async for chunk in answer.content.iter_any():
                if ready := stream.feed(chunk):
                    await passing.write(ready)
            self._replied(stream.reply())
            await passing.write_eof()
        except (TimeoutError, aiohttp.ClientError, OSError, ModelError) as error:
            self._broken(request, error)
            if request.transport is not None:
                request.transport.abort()  # so that the agent sees a stream that broke off
        return passing

    def _broken(self, request: web.Request, error: Exception) -> web.Response:
        """The answer in the place of one that the model server did not give, or not whole."""
        if request.transport is None or request.transport.is_closing():
            raise error  # it was the agent that hung up
        words = self.upstream.hidden(f"{type(error).__name__}: {error}")
        self._last = ModelUnavailable(f"{self._where} could not be asked: {words}")
        return refusal(502, f"the model server could not be asked: {words}")

    def _note(self, answer: aiohttp.ClientResponse, body: bytes) -> None:
        """Record an answer that was not streamed."""
        try:
            wire: Json = json.loads(body)
        except (ValueError, RecursionError):
            wire = body.decode("utf-8", "replace")
        if answer.status != 200 or (isinstance(wire, Mapping) and wire.get("error")):
            words, wait = self.upstream.hidden(wire), answer.headers.get("Retry-After")
            fault = failure(self._where, answer.status, words, wire, wait)
            self._last = WerError(str(fault)) if answer.status in _ITS_OWN else fault
            return
        try:
            self._replied(reply_from_wire(wire, usd=None))
        except ModelUnavailable as error:
            self._last = error

    def _replied(self, reply: Reply) -> None:
        self._last = None
        self.record.replied(reply)
        self.charge(reply.usage)

    @property
    def _where(self) -> str:
        return f"the agent's model server at {self.upstream.url}"


def refusal(status: int, words: str) -> web.Response:
    """Refuse as OpenAI's API words it."""
    error = {"message": f"wer: {words}", "type": "wer_error", "code": None}
    return web.json_response({"error": error}, status=status)


async def _object(request: web.Request) -> dict[str, Json]:
    """The body of a request for a completion."""
    try:
        asked = json.loads(await request.read())
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
        raise web.HTTPBadRequest(
            content_type="application/json",
            text=json.dumps({"error": {"message": "wer: expected a JSON object with messages"}}),
        )
    return asked


def _wants_usage(asked: Mapping[str, Json]) -> bool:
    options = asked.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


def _kept(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > REPLY_CAP_BYTES:
            raise ModelError(f"the model's server sent more than {REPLY_CAP_BYTES >> 20} MiB")
    return bytes(body)
