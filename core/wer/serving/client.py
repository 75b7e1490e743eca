"""Models behind an OpenAI-compatible server, through plain aiohttp.

A rollout makes dozens of calls and thousands of rollouts run at once, so the client's own
cost counts: aiohttp spends a fraction of the CPU of the official client and of litellm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from attrs import define, field, frozen
from yarl import URL

from wer.chat import reply_from_wire, schema_to_wire, to_wire, tools_to_wire
from wer.errors import ModelError, ModelUnavailable
from wer.records import Json, JsonObject, Message, Reply, Sampling, ToolSpec
from wer.serving.answers import failure, read_json

_TIMEOUT = aiohttp.ClientTimeout(total=600.0, sock_connect=20.0)


@frozen(kw_only=True)
class Dialect:
    """What a kind of server calls things, and what it must be told.

    Attributes:
        provider: As users write it before the first slash.
        limit: The field that limits an answer's tokens.
        top_k: Whether the server knows that field; if not, it is never sent.
        always: Fields of every request; the request's own go before them.
        usd: What a call costs, or None when the server does not know.
    """

    provider: str
    limit: str = "max_tokens"
    top_k: bool = True
    always: JsonObject = field(factory=dict)
    usd: float | None = None


@define(kw_only=True)
class ServedModel:
    """A `wer.contracts.Model` behind ``POST {url}/chat/completions``.

    Attributes:
        url: Base address, up to and with ``/v1``.
        key: Sent as bearer token when not empty; never printed.
        timeout: For one whole request.
        proxies: Whether the environment's proxies are used; never for a server of this machine.
    """

    name: str
    url: str
    key: str = field(default="", repr=False)
    dialect: Dialect
    timeout: aiohttp.ClientTimeout = _TIMEOUT
    proxies: bool = True
    _client: aiohttp.ClientSession | None = field(default=None, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @property
    def identity(self) -> JsonObject:
        """Provider, name and address; and a part of the sampling that the server does not know."""
        ignored = {} if self.dialect.top_k else {"ignores": ["top_k"]}
        return {"provider": self.dialect.provider, "name": self.name, "url": self.url, **ignored}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`.

        Raises:
            ModelUnavailable: 429, 5xx, time-out, reset, truncated or unreadable answer.
            ModelError: The server refused for good, or sent more than 16 MiB.
            PromptTooLong: The server says that the prompt exceeds its context.
        """
        body = self._body(messages, tools, sampling)
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            async with self._session().post(
                f"{self.url}/chat/completions", json=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
                wire = await read_json(response, self._where, key=self.key)
                retry_after = response.headers.get("Retry-After")
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self._where} gave no answer in {self.timeout.total:g} s", kind="time-out"
            ) from error
        except (aiohttp.InvalidURL, ValueError) as error:
            raise ModelError(f"{self._where} cannot be asked: {self._hidden(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(
                f"{self._where} broke off: {self._hidden(error)}", kind=_break(error)
            ) from error
        if status != 200 or not isinstance(wire, dict) or wire.get("error"):
            raise failure(self._where, status, self._hidden(wire), wire, retry_after)
        return reply_from_wire(wire, usd=self.dialect.usd)

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _where(self) -> str:
        return f"{self.dialect.provider}/{self.name} at {self.url}"

    def _hidden(self, words: Any) -> str:
        """Some words of a server, without the key that it may repeat."""
        text = f"{type(words).__name__}: {words}" if isinstance(words, Exception) else str(words)
        return text.replace(self.key, "***") if self.key else text

    def _session(self) -> aiohttp.ClientSession:
        """The client of the running loop, made at the first call; the loop limits concurrency, not it."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            connector = aiohttp.TCPConnector(limit=0)
            proxy = _proxy(URL(self.url)) if self.proxies else None
            self._client = aiohttp.ClientSession(connector=connector, timeout=self.timeout, proxy=proxy)
            self._loop = loop
        return self._client

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> dict[str, Json]:
        body: dict[str, Json] = {
            **self.dialect.always,
            "model": self.name,
            "messages": [to_wire(message) for message in messages],
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            self.dialect.limit: sampling.max_tokens,
        }
        if sampling.top_p != 1.0:
            body["top_p"] = sampling.top_p
        if sampling.top_k and self.dialect.top_k:
            body["top_k"] = sampling.top_k
        if tools:
            body["tools"] = tools_to_wire(tools)
        if sampling.json_schema is not None:
            body["response_format"] = schema_to_wire(sampling.json_schema)
        return body


def _proxy(url: URL) -> str | None:
    """Find the environment's proxy for an address, once: aiohttp would look for it at each call, in a thread."""
    return None if url.host is None or proxy_bypass(url.host) else getproxies().get(url.scheme)


def _break(error: Exception) -> str:
    """What kind of fault a broken connection is."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return "truncated answer"
    return "unreachable" if isinstance(error, aiohttp.ClientConnectorError) else "connection reset"
