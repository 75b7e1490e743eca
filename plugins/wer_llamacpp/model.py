"""A GGUF file as a `wer.contracts.Model`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from attrs import field, frozen

from wer.chat import dumps, reply_from_wire, schema_to_wire, to_wire, tools_to_wire
from wer.records import Json, JsonObject, Message, Reply, Sampling, ToolSpec
from wer_llamacpp.instance import Instance
from wer_llamacpp.naming import LocalName
from wer_llamacpp.pool import InstancePool


@frozen(kw_only=True)
class LocalModel:
    """Runs in this process, off the event loop, on every core.

    Equal seeds give equal replies when as much of the prompt is in the cache. Otherwise
    llama.cpp adds up in another order, and rounding now and then turns a sampled token:
    often at high temperatures, hardly ever under a schema at low ones.

    Attributes:
        sha256: Of the file; two files of one name are two models.
    """

    name: str
    path: Path
    sha256: str
    context: int
    _pool: InstancePool = field(repr=False)

    @classmethod
    def of(cls, name: LocalName) -> LocalModel:
        """Open a model; the first copy is loaded now, so that a bad file is found at once.

        Raises:
            WerError: xllamacpp is not installed, or the file can't be had.
            ModelError: llama.cpp can't load it.
        """
        path, sha256 = name.locate()
        context = name.options.context
        pool = InstancePool(lambda: Instance(path, context), name.instances, first=Instance(path, context))
        return cls(name=path.stem, path=path, sha256=sha256, context=context, pool=pool)

    @property
    def identity(self) -> JsonObject:
        """The file's hash, and the context, where a longer history ends the episode."""
        return {"provider": "local", "name": self.name, "sha256": self.sha256, "context": self.context}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`. A cancelled call stops at its next token.

        Raises:
            PromptTooLong: The prompt doesn't fit the context.
            ModelError: llama.cpp refused the request, for example a schema.
        """
        body = _body(messages, tools, sampling)
        prompt = dumps([body.get("tools"), body["messages"]])
        stopped = threading.Event()
        try:
            answer = await asyncio.wrap_future(self._pool.submit(prompt, body, stopped))
        finally:
            stopped.set()
        return reply_from_wire(answer, usd=0.0)

    async def close(self) -> None:
        """Stop what runs and free the memory. Safe to call twice."""
        await asyncio.to_thread(self._pool.close)


def _body(messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> dict[str, Json]:
    """Ask for exactly this sampling: llama.cpp's own defaults (top-k 40, min-p 0.05) are switched off."""
    body: dict[str, Json] = {
        "messages": [to_wire(message) for message in messages],
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": 0.0,
        "seed": sampling.seed,
        "cache_prompt": True,
    }
    if tools:
        body["tools"] = tools_to_wire(tools)
    if sampling.json_schema is not None:
        body["response_format"] = schema_to_wire(sampling.json_schema)
    return body
