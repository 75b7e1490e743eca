"""Any model as the skill generator, for Skill-R1 without gradient steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wer.contracts import OptimizerSetup, Written
from wer.records import Message, Sampling, derive_seed
from wer.together import together

_CHARACTERS_A_TOKEN = 4


class Writes(Protocol):
    """What the recurrence needs of whoever writes: the part of `wer.contracts.Policy` without weights."""

    async def excess(self, requests: Sequence[Sequence[Message]]) -> Sequence[int]:
        """See `wer.contracts.Policy`."""
        ...

    async def sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> Sequence[Sequence[Written]]:
        """See `wer.contracts.Policy`."""
        ...


class Asked:
    """A model behind an interface; its tokenizer is out of reach, so that lengths are estimated."""

    def __init__(self, setup: OptimizerSetup) -> None:
        self._setup = setup
        self._model = setup.open_model()

    async def excess(self, requests: Sequence[Sequence[Message]]) -> Sequence[int]:
        """By how many tokens of four characters each request is over the limit."""
        lengths = [sum(len(message.content) for message in request) for request in requests]
        return [
            max(0, -(-length // _CHARACTERS_A_TOKEN) - self._setup.max_prompt_tokens) for length in lengths
        ]

    async def sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> Sequence[Sequence[Written]]:
        """Ask k times a request, all at once."""
        return await together(
            self._group(request, seed, k) for request, seed in zip(requests, seeds, strict=True)
        )

    async def _group(self, request: Sequence[Message], seed: int, k: int) -> Sequence[Written]:
        return await together(self._ask(request, derive_seed(seed, index)) for index in range(k))

    async def _ask(self, request: Sequence[Message], seed: int) -> Written:
        sampling = Sampling(
            temperature=self._setup.temperature,
            top_k=self._setup.top_k,
            max_tokens=self._setup.max_response_tokens,
            seed=seed,
        )
        reply = await self._model.complete(request, (), sampling)
        return Written(text=reply.text, token_ids=(), logprobs=(), usage=reply.usage)
