"""A local model as a `wer.contracts.Model`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from attrs import field, frozen

from wer.chat import clean
from wer.errors import PromptTooLong
from wer.records import JsonObject, Message, Reply, Sampling, ToolSpec, Usage
from wer_torch import grammar, prompts
from wer_torch.engine import Engine
from wer_torch.grammar import Grammars
from wer_torch.naming import TorchName, TorchOptions
from wer_torch.prompts import Prompts
from wer_torch.replies import split_calls
from wer_torch.weights import Loaded, load


@frozen(kw_only=True, eq=False)
class TorchModel:
    """Runs in this process, in a thread of its own, all requests side by side.

    Equal seeds give equal replies up to rounding, which depends on the rows beside.
    """

    loaded: Loaded
    options: TorchOptions
    _engine: Engine = field(repr=False)
    _prompts: Prompts = field(repr=False)
    _grammars: Grammars = field(repr=False)
    _layouts: JsonObject = field(repr=False)

    @classmethod
    def of(cls, name: TorchName) -> TorchModel:
        """Load a model; see `wer_torch.weights.load` for what can go wrong."""
        return cls.serving(load(name.source), name.options)

    @classmethod
    def serving(cls, loaded: Loaded, options: TorchOptions) -> TorchModel:
        """Serve weights that are in memory already."""
        vocabulary = loaded.model.get_output_embeddings().weight.shape[0]
        return cls(
            loaded=loaded,
            options=options,
            engine=Engine(loaded, batch=options.batch, cache_bytes=options.cache_mib << 20),
            prompts=Prompts(tokenizer=loaded.tokenizer),
            grammars=Grammars.of(loaded.tokenizer, vocabulary, loaded.end_tokens),
            layouts={"prompt": prompts.layout(), "json": grammar.layout()},
        )

    @property
    def identity(self) -> JsonObject:
        """The weights and how they compute, and the layouts of prompts and JSON replies."""
        return {
            "provider": "torch",
            "name": self.loaded.name,
            "sha256": self.loaded.sha256,
            "dtype": self.loaded.dtype,
            "context": self.options.context,
            **self._layouts,
        }

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`. A cancelled call frees its row at the next pass.

        Raises:
            PromptTooLong: The prompt doesn't fit the context.
            ModelError: The template or the grammar refused, the engine failed, or was closed.
        """
        prompt = self._prompts.encode(messages, tools)
        room = self.options.context - len(prompt)
        if room < 1:
            raise PromptTooLong(
                f"a prompt of {len(prompt)} tokens does not fit the local model's context of "
                f"{self.options.context}. Shorten the skill, or ask for more: "
                f"torch/NAME?context={2 * self.options.context}."
            )
        schema = sampling.json_schema
        constraint = None if schema is None else self._grammars.constraint(schema)
        done = await asyncio.wrap_future(
            self._engine.submit(prompt, min(room, sampling.max_tokens), sampling, constraint)
        )
        text = clean(self.loaded.tokenizer.decode(done.tokens, clean_up_tokenization_spaces=False))
        native = bool(tools) and schema is None
        text, calls, malformed = split_calls(text) if native else (text, (), ())
        return Reply(
            text=text,
            calls=calls,
            malformed=malformed,
            finish="tool_calls" if calls and done.finish == "stop" else done.finish,
            usage=Usage(
                calls=1,
                prompt_tokens=len(prompt),
                completion_tokens=len(done.tokens),
                cached_tokens=done.cached,
                usd=0.0,
            ),
        )

    async def close(self) -> None:
        """Stop what runs; the weights go when nobody holds this object. Safe to call twice."""
        await asyncio.to_thread(self._engine.close)
