"""The policy for optimizers of other plugins: they say what is asked and what an answer earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from attrs import evolve

from wer.contracts import Lesson, OptimizerSetup, Written
from wer.errors import ConfigError, OptimizerError, PromptTooLong
from wer.records import Message, Usage
from wer_grpo.checkpoints import Progress, load_learner, newest_checkpoint, read_progress, write_checkpoint
from wer_grpo.learner import Group
from wer_grpo.policy import Answer
from wer_grpo.trained import Trained


class Lent(Trained):
    """A `wer.contracts.Policy`: the same weights, sampler and learner as those of ``--backend grpo``."""

    def __init__(self, setup: OptimizerSetup) -> None:
        super().__init__(setup)
        self._progress = Progress()
        self._folder = Path()

    @property
    def batch(self) -> int:
        """See `GrpoOptions.batch`."""
        return self._options.batch

    async def excess(self, requests: Sequence[Sequence[Message]]) -> Sequence[int]:
        """See `wer.contracts.Policy`."""
        return await self._worker.run(lambda: [self._excess(request) for request in requests])

    def _excess(self, request: Sequence[Message]) -> int:
        return max(0, len(self._writer.encode(request)) - self._writer.max_prompt_tokens)

    async def sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> Sequence[Sequence[Written]]:
        """Sample as many answers side by side as in training; see `wer.contracts.Policy`."""
        if max(await self.excess(requests), default=0):
            raise PromptTooLong(
                f"a request is over the limit of {self._writer.max_prompt_tokens} prompt tokens"
            )
        found: list[list[Written]] = []
        side_by_side = max(1, self._options.batch * self._setup.k // k)
        for start in range(0, len(requests), side_by_side):
            part = slice(start, start + side_by_side)
            self._setup.check()
            groups = await self._worker.run(partial(self._sample, requests[part], seeds[part], k))
            self._setup.charge(sum((each.usage for group in groups for each in group), Usage()))
            found += groups
        return found

    def _sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> list[list[Written]]:
        prompts = [self._writer.encode(request) for request in requests]
        drawn = self._author.draw(prompts, seeds, k)
        return [
            [self._written(prompt, index, answer) for index, answer in enumerate(group)]
            for prompt, group in zip(prompts, drawn, strict=True)
        ]

    def _written(self, prompt: torch.Tensor, index: int, answer: Answer) -> Written:
        return Written(
            text=self._writer.text(answer),
            token_ids=tuple(answer.token_ids.tolist()),
            logprobs=tuple(answer.logprobs.tolist()),
            usage=self._writer.usage(prompt, index, answer),
        )

    async def update(self, lessons: Sequence[Lesson], progress: tuple[float, float]) -> Mapping[str, float]:
        """See `wer.contracts.Policy`."""
        if not all(lesson.token_ids for lesson in lessons):
            raise OptimizerError(
                "an answer to learn from has no token ids, so another kind of writer wrote it. Start a new run."
            )
        groups = await self._worker.run(lambda: [self._group(lesson) for lesson in lessons])
        return await self._worker.run(lambda: self._learn(groups, progress, self._folder))

    def _group(self, lesson: Lesson) -> Group:
        prompt = self._writer.encode(lesson.request)
        tokens = torch.tensor(lesson.token_ids, device=prompt.device)
        return Group(
            prompt=prompt,
            answers=self._writer.policy.recall(prompt, [tokens]),
            advantages=lesson.advantages,
        )

    async def checkpoint(self, folder: Path, done: Sequence[str]) -> None:
        """See `wer.contracts.Policy`."""
        self._progress = evolve(self._progress, done=tuple(done), batches=self._progress.batches + 1)
        await self._worker.run(lambda: write_checkpoint(self._learner, self._progress, folder))

    async def resume(self, folder: Path) -> Sequence[str]:
        """See `wer.contracts.Policy`."""
        if self._setup.temperature <= 0:
            raise ConfigError("training.temperature is 0: nothing is tried but the most likely. Raise it.")
        self._folder = folder
        self._progress = await self._worker.run(lambda: self._take_up(folder))
        return self._progress.done

    def _take_up(self, folder: Path) -> Progress:
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = newest_checkpoint(folder)
        if checkpoint is None:
            return Progress()
        self._setup.progress(f"going on from {checkpoint.name}")
        load_learner(self._learner, checkpoint)
        return read_progress(checkpoint)
