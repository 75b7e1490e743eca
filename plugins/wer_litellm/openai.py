"""Models behind an OpenAI-compatible server, through plain aiohttp.

A rollout makes dozens of calls and thousands of rollouts run at once, so the client's own
cost counts: aiohttp spends a fraction of the CPU of the official client and of litellm.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import aiohttp
from attrs import define, field

from wer.chat import reply_from_wire, schema_to_wire, to_wire, tools_to_wire
from wer.errors import ConfigError, ModelError, ModelUnavailable
from wer.records import Json, JsonObject, Message, Reply, Sampling, ToolSpec
from wer_litellm.answers import failure, read_json

OPENAI_URL = "https://api.openai.com/v1"

_TIMEOUT = aiohttp.ClientTimeout(total=600.0, sock_connect=20.0)


@define(kw_only=True)
class OpenAIModel:
    """A `wer.contracts.Model` behind ``POST {url}/chat/completions``.

    Attributes:
        url: Base address, up to and with ``/v1``.
        key: Sent as bearer token when not empty; never printed.
        timeout: For one whole request.
    """

    name: str
    url: str
    key: str = field(repr=False)
    timeout: aiohttp.ClientTimeout = _TIMEOUT
    _client: aiohttp.ClientSession | None = field(default=None, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @classmethod
    def named(cls, rest: str) -> OpenAIModel:
        """Make the model of ``name`` or ``name@url``.

        With a URL the key is ``WER_API_KEY``, if there is one: OpenAI's own key is
        never shown to another server.

        Raises:
            ConfigError: The name is empty, or the URL is not one.
            ModelError: OpenAI's own API is meant and no key is set.
        """
        name, at, url = rest.partition("@")
        if not name:
            raise ConfigError(
                f"a model needs a name, got 'openai/{rest}'. Write openai/NAME or openai/NAME@URL."
            )
        if at and not url.startswith(("http://", "https://")):
            raise ConfigError(f"{url!r} is not an address. Write openai/{name}@http://HOST:PORT/v1.")
        key = os.environ.get("WER_API_KEY", "")
        if not at:
            key = os.environ.get("OPENAI_API_KEY", "") or key
            if not key:
                raise ModelError(
                    f"no API key for openai/{name}. Set OPENAI_API_KEY (or WER_API_KEY), or name a server "
                    f"that needs none: openai/{name}@http://127.0.0.1:8000/v1."
                )
        return cls(name=name, url=(url or OPENAI_URL).rstrip("/"), key=key.strip())

    @property
    def identity(self) -> JsonObject:
        """Provider, name and address; and that OpenAI's own API has no top_k, so it is not sent."""
        ignored = {"ignores": ["top_k"]} if self._official else {}
        return {"provider": "openai", "name": self.name, "url": self.url, **ignored}

    @property
    def _official(self) -> bool:
        return self.url == OPENAI_URL

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`. The price is not known here.

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
                wire = await read_json(response, self._where)
                retry_after = response.headers.get("Retry-After")
        except TimeoutError as error:
            raise ModelUnavailable(f"{self._where} gave no answer in {self.timeout.total:g} s") from error
        except (aiohttp.InvalidURL, ValueError) as error:
            raise ModelError(f"{self._where} cannot be asked: {self._hidden(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(f"{self._where} broke off: {self._hidden(error)}") from error
        if status != 200 or not isinstance(wire, dict) or wire.get("error"):
            raise failure(self._where, status, self._hidden(wire), wire, retry_after)
        return reply_from_wire(wire, usd=None)

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _where(self) -> str:
        return f"openai/{self.name} at {self.url}"

    def _hidden(self, words: Any) -> str:
        """Some words of a server, without the key that it may repeat."""
        text = f"{type(words).__name__}: {words}" if isinstance(words, Exception) else str(words)
        return text.replace(self.key, "***") if self.key else text

    def _session(self) -> aiohttp.ClientSession:
        """The client of the running loop, made at the first call; the loop limits concurrency, not it."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            connector = aiohttp.TCPConnector(limit=0)
            self._client = aiohttp.ClientSession(connector=connector, timeout=self.timeout, trust_env=True)
            self._loop = loop
        return self._client

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> dict[str, Json]:
        limit = "max_completion_tokens" if self._official else "max_tokens"
        body: dict[str, Json] = {
            "model": self.name,
            "messages": [to_wire(message) for message in messages],
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            limit: sampling.max_tokens,
        }
        if sampling.top_p != 1.0:
            body["top_p"] = sampling.top_p
        if sampling.top_k and not self._official:
            body["top_k"] = sampling.top_k
        if tools:
            body["tools"] = tools_to_wire(tools)
        if sampling.json_schema is not None:
            body["response_format"] = schema_to_wire(sampling.json_schema)
        return body
