"""A model in vLLM as a `wer.contracts.Model`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from attrs import define, evolve, field

from wer.contracts import Model, ModelSetup
from wer.errors import ModelError, ModelUnavailable
from wer.records import JsonObject, Message, Reply, Sampling, ToolSpec
from wer.serving.client import Dialect, ServedModel
from wer_vllm import families, leftovers, weights
from wer_vllm.arguments import arguments, environ
from wer_vllm.naming import VllmName
from wer_vllm.program import Program
from wer_vllm.server import Plan, Server, log_path

_RESTARTS = 2
_DIES_WITHIN_S = 3.0
_DIALECT = Dialect(
    provider="vllm",
    # What a server takes from the model's generation_config.json unless it is told otherwise.
    always={"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
    usd=0.0,
)


def open_model(setup: ModelSetup) -> Model:
    """Name a running server, or begin to start one; it loads while the run opens its other parts.

    Raises:
        ConfigError: A wrong name or option, GPUs that can't be divided, or no vLLM.
    """
    name = VllmName.parse(setup.name)
    dialect = _DIALECT
    if name.options.thinking:
        switch = {"enable_thinking": name.options.thinking == "on"}
        dialect = evolve(dialect, always={**dialect.always, "chat_template_kwargs": switch})
    if name.url:
        key = os.environ.get("WER_API_KEY", "").strip()
        return ServedModel(name=name.model, url=name.url, key=key, dialect=dialect)
    return VllmModel.starting(name, setup, dialect)


@define(kw_only=True, eq=False)
class VllmModel:
    """Served by a process of this machine, which is started again when it dies on the way.

    Attributes:
        parser: Of tool calls, or "" when the model's family has none that is known.
    """

    identity: JsonObject
    parser: str
    _plan: Plan
    _dialect: Dialect
    _server: Server
    _client: ServedModel
    _start: asyncio.Task[None] | None = field(default=None, init=False)
    _restarts: int = field(default=0, init=False)
    _closed: bool = field(default=False, init=False)

    @classmethod
    def starting(cls, name: VllmName, setup: ModelSetup, dialect: Dialect) -> VllmModel:
        """Start the server; see `open_model`."""
        for line in leftovers.reap():
            setup.say(f"ended {line}")
        program = Program.find()
        folder = Path(name.model).expanduser()
        local = folder.is_dir()
        model = str(folder.resolve()) if local else name.model
        names = (folder.name, weights.model_type(folder)) if local else (name.model,)
        parser = name.options.parser or families.parser(*names)

        def command(port: int) -> tuple[str, ...]:
            return program.command + arguments(model, name.options, gpus=setup.gpus, parser=parser, port=port)

        plan = Plan(
            model=name.model,
            command=command,
            environ=lambda key: environ(key=key, gpus=setup.gpus),
            log=log_path(setup.folder, setup.name),
            start_s=name.options.start_s,
            say=setup.say,
        )
        identity: dict[str, object] = {
            "provider": "vllm",
            "name": folder.name if local else name.model,
            "weights": weights.fingerprint(folder) if local else name.options.revision or "main",
            "context": name.options.context,
            "parser": parser,
            "thinking": name.options.thinking,
            "version": program.version,
        }
        server = Server(plan)
        client = ServedModel(name=model, url=server.url, key=server.key, dialect=dialect, proxies=False)
        setup.say(f"starting vllm/{name.model}; its log is {plan.log}")
        return cls(identity=identity, parser=parser, plan=plan, dialect=dialect, server=server, client=client)

    async def ready(self) -> None:
        """Wait until the server answers; start it again if it has died since, which it may do twice.

        Raises:
            ModelError: It did not start, which is not tried again, died too often, or is closed.
        """
        if self._closed:
            raise ModelError(f"vllm/{self._plan.model} is closed")
        start = self._start
        if start is None or (start.done() and start.exception() is None and self._server.dead):
            start = self._start = asyncio.create_task(self._begin(again=start is not None))
        await asyncio.shield(start)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`. Waits while the server is starting.

        Raises:
            PromptTooLong: Prompt and answer don't fit the context.
            ModelUnavailable: Also when the server has died: the next call starts it again.
            ModelError: Also when it did not start, or can't read its model's tool calls.
        """
        if tools and not self.parser:
            raise ModelError(
                f"vllm/{self._plan.model}: how this model writes tool calls is not known here. Name vLLM's "
                "parser with ?parser=, or use mode 'step' or 'plan' in [executor_options]."
            )
        await self.ready()
        client, server = self._client, self._server
        try:
            return await client.complete(messages, tools, sampling)
        except ModelUnavailable as error:
            if self._closed or not await server.died(_DIES_WITHIN_S):
                raise
            raise ModelUnavailable(server.obituary("died")) from error

    async def close(self) -> None:
        """Stop the server, and leave no process. Safe to call twice."""
        self._closed = True
        if self._start is not None:
            self._start.cancel()
            await asyncio.wait({self._start})
        await self._client.close()
        await self._server.stop()

    async def _begin(self, *, again: bool) -> None:
        if again:
            words = self._server.obituary("died")
            if self._restarts == _RESTARTS:
                raise ModelError(f"{words}\nIt was started {1 + _RESTARTS} times; not again.")
            self._restarts += 1
            self._plan.say(f"{words}\nstarting it again")
            await self._client.close()
            await self._server.stop()
            self._server = Server(self._plan)
            self._client = evolve(self._client, url=self._server.url, key=self._server.key)
        await self._server.ready()
