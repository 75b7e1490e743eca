"""The model that reflects, as the gepa package calls it: metered, and never paid twice for one answer."""

from __future__ import annotations

from typing import Any

from wer.contracts import OptimizerSetup
from wer.errors import PromptTooLong
from wer.records import Message, Sampling, content_hash, derive_seed
from wer_gepa.bridge import Bridge

_CHARACTERS_A_TOKEN = 4


class Reflection:
    """A language model in gepa's sense: a prompt in, a text out, in gepa's thread.

    A prompt that comes again is another sample. Answers are kept in the run's notes by prompt
    and sample, so that an interrupted search goes the same way again for nothing.

    Args:
        seed: Of the sampling.
    """

    def __init__(self, setup: OptimizerSetup, bridge: Bridge, seed: int) -> None:
        self._setup = setup
        self._model = setup.open_model()
        self._bridge = bridge
        self._seed = seed
        self._asked: dict[str, int] = {}

    def __call__(self, prompt: str | list[dict[str, Any]]) -> str:
        """Answer a prompt.

        Raises:
            PromptTooLong: Nothing is truncated; gepa goes on with other tasks.
        """
        if not isinstance(prompt, str):
            raise ValueError("gepa asked with images, and a skill has none")
        return self._bridge.wait(lambda: self._answer(prompt))

    async def _answer(self, prompt: str) -> str:
        tokens = -(-len(prompt) // _CHARACTERS_A_TOKEN)
        if tokens > self._setup.max_prompt_tokens:
            self._setup.progress(f"a reflection of about {tokens:,} prompt tokens is left out: too long")
            raise PromptTooLong(
                f"a reflection has about {tokens} tokens and the limit is {self._setup.max_prompt_tokens}. Raise "
                "training.max_prompt_tokens, or lower optimizer.gepa.minibatch."
            )
        sample = self._asked[prompt] = self._asked.get(prompt, -1) + 1
        key = content_hash([self._model.identity, self._seed, sample, prompt])
        text = self._setup.notes.get(key)
        if text is None:
            sampling = Sampling(
                temperature=self._setup.temperature,
                top_k=self._setup.top_k,
                max_tokens=self._setup.max_response_tokens,
                seed=derive_seed(self._seed, "reflection", key),
            )
            text = (await self._model.complete([Message(role="user", content=prompt)], (), sampling)).text
            self._setup.notes.put(key, text)
        return text
