"""Weights that one plugin trains for the method of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import frozen

from wer.records import Message, Usage


@frozen(kw_only=True)
class Written:
    """One answer of a policy.

    Attributes:
        token_ids: Shape ``(T,)``, ids of the policy's own tokenizer.
        logprobs: Shape ``(T,)``, in nats, of the distribution that was sampled from.
        usage: The prompt is charged to the first of the answers that share it.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    usage: Usage


@frozen(kw_only=True)
class Lesson:
    """One answer of a policy, with what it earned.

    Attributes:
        request: What was asked, as it was.
        token_ids: Shape ``(T,)``, as they were sampled since the last update.
        advantages: Shape ``(N,)``, for example one a rollout. Each is a term of the clipped surrogate
            of its own, all with the probability ratio of this one answer.
    """

    request: Sequence[Message]
    token_ids: tuple[int, ...]
    advantages: tuple[float, ...]


class Policy(Protocol):
    """Weights that an optimizer of another plugin writes with and trains by a clipped surrogate.

    How it updates (rate, clipping, a KL penalty) is the user's, in the table ``[optimizer.NAME]`` of
    the policy; what an answer earned is the optimizer's. It charges what it writes itself.
    """

    @property
    def batch(self) -> int:
        """How many states the user wants sampled side by side, and learnt from together."""
        ...

    async def excess(self, requests: Sequence[Sequence[Message]]) -> Sequence[int]:
        """By how many tokens each request is over the limit; 0 for one that fits."""
        ...

    async def sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> Sequence[Sequence[Written]]:
        """Write k answers to each request; a seed and a place in the group decide an answer's dice.

        Raises:
            PromptTooLong: A request does not fit; nothing was sampled.
            BudgetExhausted: Before anything is sampled.
        """
        ...

    async def update(self, lessons: Sequence[Lesson], progress: tuple[float, float]) -> Mapping[str, float]:
        """Learn from lessons that the present weights wrote, and give `wer.measures.OF_UPDATE`.

        The loss is the mean over the lessons of the mean over their terms.

        Args:
            progress: Share of the whole training done before and after this update.

        Raises:
            OptimizerError: Loss or gradient is not finite; that step was not made.
        """
        ...

    async def checkpoint(self, folder: Path, done: Sequence[str]) -> None:
        """Write a phase's next checkpoint, whole or not at all.

        Args:
            done: Names of all that the phase learnt from so far, for `resume`.
        """
        ...

    async def resume(self, folder: Path) -> Sequence[str]:
        """Take up a phase's newest checkpoint and give what it had learnt from; nothing when there is none."""
        ...

    def save(self, folder: Path) -> None:
        """See `Optimizer.save`."""
        ...

    def load(self, folder: Path) -> None:
        """See `Optimizer.load`."""
        ...

    async def close(self) -> None:
        """Free the weights. Safe to call twice."""
        ...
