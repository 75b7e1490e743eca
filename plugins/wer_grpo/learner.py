"""The update of theta: a few clipped steps on the groups of one batch [Algorithm 1, line 16]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from attrs import define, evolve, frozen

from wer.errors import OptimizerError
from wer_grpo.options import GrpoOptions
from wer_grpo.policy import Answer, Policy
from wer_grpo.schedule import learning_rate
from wer_grpo.surrogate import Surrogate, surrogate


@define(kw_only=True, eq=False)
class Group:
    """The answers to one prompt, with what they earned.

    Attributes:
        prompt: Shape ``(P,)``.
        advantages: Shape ``(K,)`` [Eq. 5], or ``(K * N,)``: N for each answer, one after the other.
            Each is a term of its own, with the ratio of its answer.
        old: Log-probabilities under the policy that sampled, by the code that also gives
            the new ones; filled in before the batch's first step.
        reference: Likewise under the writer as it was given, where a KL penalty needs them.
    """

    prompt: torch.Tensor
    answers: tuple[Answer, ...]
    advantages: tuple[float, ...]
    old: tuple[torch.Tensor, ...] | None = None
    reference: tuple[torch.Tensor, ...] | None = None

    @property
    def teaches(self) -> bool:
        """False when all candidates earned the same: the gradient is exactly zero."""
        return any(self.advantages)

    def each(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Give what belongs to the answers once a term."""
        return [value for value in values for _ in range(len(self.advantages) // len(self.answers))]


@frozen(kw_only=True)
class _Step:
    loss: float
    clipped: float
    entropy: float
    divergence: float
    norm: float


class Learner:
    """AdamW on float32 copies of the trained weights; the model keeps its own precision.

    Adam's steps are smaller than bfloat16 resolves, so that the copies learn and the
    model is rounded from them. There is no random state: every draw of the sampler
    derives from the run's seed and the state's id.

    Args:
        weights: The weights that learn, by name; they get overwritten at each step.
    """

    def __init__(
        self, policy: Policy, weights: Mapping[str, torch.nn.Parameter], options: GrpoOptions
    ) -> None:
        self._policy = policy
        self._weights = weights
        self._options = options
        self.copies = {
            name: weight.detach().to(torch.promote_types(weight.dtype, torch.float32), copy=True)
            for name, weight in weights.items()
        }
        # A LoRA adapter begins at exactly zero, so that its first weights are the model without it.
        self._given = (
            {name: weight.detach().clone() for name, weight in weights.items()} if options.kl else {}
        )
        self.adam = torch.optim.AdamW(self.copies.values(), lr=0.0, weight_decay=options.weight_decay)

    def update(
        self, groups: Sequence[Group], progress: tuple[float, float], tick: Callable[[], None]
    ) -> dict[str, float]:
        """Make the steps of one batch and say how they went.

        A group whose candidates all earned the same is skipped, and still counts in the
        mean over groups. A batch of such groups makes no step. A KL penalty teaches always.

        Args:
            progress: Share of the whole training done before and after this batch.
            tick: Called before each group; may raise to stop.

        Raises:
            OptimizerError: A loss or gradient is not finite; that step was not made.
        """
        pieces = self._minibatches(groups)
        self._refer(groups, tick)
        for piece in pieces[1:]:
            self._remember(piece, tick)
        count = len(pieces) * self._options.epochs
        steps = []
        for index in range(count):
            share = (index + 0.5) / count
            self._set_rate(progress[0] + share * (progress[1] - progress[0]))
            step = self._step(pieces[index % len(pieces)], tick)
            if step is not None:
                steps.append(step)
        return self._summary(steps)

    def restore(self, copies: Mapping[str, torch.Tensor], adam: Mapping[str, Any]) -> None:
        """Take over the weights and Adam's moments of a checkpoint."""
        with torch.no_grad():
            for name, copy in self.copies.items():
                copy.copy_(copies[name])
        self.adam.load_state_dict(dict(adam))
        self._put(self.copies)

    def _minibatches(self, groups: Sequence[Group]) -> list[Sequence[Group]]:
        size = self._options.minibatch or len(groups)
        return [groups[start : start + size] for start in range(0, len(groups), size)]

    def _teaches(self, group: Group) -> bool:
        return group.teaches or self._options.kl > 0

    def _refer(self, groups: Sequence[Group], tick: Callable[[], None]) -> None:
        """Fill in the log-probabilities under the writer as it was given, if a penalty needs them."""
        if not self._given:
            return
        try:
            self._put(self._given)
            for group in groups:
                tick()
                with torch.no_grad():
                    group.reference = self._policy.score(group.prompt, group.answers).logprobs
        finally:
            self._put(self.copies)

    def _remember(self, groups: Sequence[Group], tick: Callable[[], None]) -> None:
        """Fill in the old log-probabilities before the first step; that step's own groups need no pass."""
        for group in groups:
            if self._teaches(group):
                tick()
                with torch.no_grad():
                    group.old = self._policy.score(group.prompt, group.answers).logprobs

    def _step(self, groups: Sequence[Group], tick: Callable[[], None]) -> _Step | None:
        teaching = [group for group in groups if self._teaches(group)]
        if not teaching:
            return None
        results = list(self._backward(teaching, len(groups), tick))
        for name, weight in self._weights.items():
            copy = self.copies[name]
            copy.grad = None if weight.grad is None else weight.grad.to(copy.dtype)
            weight.grad = None
        norm = torch.nn.utils.clip_grad_norm_(self.copies.values(), self._options.max_grad_norm)
        if not math.isfinite(float(norm)):
            raise OptimizerError(f"the gradient's norm is {float(norm)}")
        self.adam.step()
        self._put(self.copies)
        return _Step(
            loss=sum(float(result.loss) for result, _ in results) / len(groups),
            clipped=sum(result.clipped for result, _ in results) / len(results),
            entropy=sum(entropy for _, entropy in results) / len(results),
            divergence=sum(result.divergence for result, _ in results) / len(results),
            norm=float(norm),
        )

    def _backward(
        self, groups: Sequence[Group], divisor: int, tick: Callable[[], None]
    ) -> Iterator[tuple[Surrogate, float]]:
        """Add up the gradients of some groups; give the surrogate and the entropy of each."""
        try:
            for group in groups:
                tick()
                scores = self._policy.score(group.prompt, group.answers)
                if group.old is None:
                    group.old = tuple(values.detach() for values in scores.logprobs)
                result = surrogate(
                    group.each(scores.logprobs),
                    group.each(group.old),
                    group.advantages,
                    clip=self._options.clip,
                    ratio=self._options.ratio,
                    kl=self._options.kl,
                    reference=None if group.reference is None else group.each(group.reference),
                )
                loss = float(result.loss.detach())
                if not math.isfinite(loss):
                    raise OptimizerError(f"the loss is {loss}")
                (result.loss / divisor).backward()  # type: ignore[no-untyped-call]
                yield evolve(result, loss=result.loss.detach()), scores.entropy
        except BaseException:
            for weight in self._weights.values():
                weight.grad = None
            raise

    def _set_rate(self, progress: float) -> None:
        rate = learning_rate(progress, peak=self._options.learning_rate, warmup=self._options.warmup)
        for group in self.adam.param_groups:
            group["lr"] = rate

    def _put(self, values: Mapping[str, torch.Tensor]) -> None:
        """Give the model these weights, in its own precision."""
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(values[name])

    def _summary(self, steps: Sequence[_Step]) -> dict[str, float]:
        count = max(len(steps), 1)
        return {
            "steps": float(len(steps)),
            "loss": sum(step.loss for step in steps) / count,
            "clip_fraction": sum(step.clipped for step in steps) / count,
            "entropy": sum(step.entropy for step in steps) / count,
            "grad_norm": max((step.norm for step in steps), default=0.0),
            "learning_rate": float(self.adam.param_groups[0]["lr"]),
            **({"kl_reference": sum(step.divergence for step in steps) / count} if self._options.kl else {}),
        }
