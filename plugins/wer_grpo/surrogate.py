"""The advantage and the clipped surrogate of GRPO [Eq. 5 and 6]: no critic, no KL, no reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from attrs import frozen


def advantages(rewards: Sequence[float], *, scaled: bool) -> tuple[float, ...]:
    """Give each reward's deviation from its group's mean [Eq. 5].

    Args:
        rewards: Shape ``(K,)``, the rewards of one group.
        scaled: Divide by the standard deviation (over K - 1). A group of equal
            rewards has advantages of zero either way.
    """
    values = torch.tensor(rewards, dtype=torch.float64)
    if bool((values == values[0]).all()):
        return (0.0,) * len(rewards)
    deviations = values - values.mean()
    return tuple((deviations / values.std() if scaled else deviations).tolist())


@frozen(kw_only=True)
class Surrogate:
    """The loss of one group, to be minimised.

    Attributes:
        loss: Scalar, minus the group's part of J in Eq. 6.
        clipped: Share of the ratios at which the clipped branch of the minimum was
            taken, so that no gradient flows; a mean over candidates.
    """

    loss: torch.Tensor
    clipped: float


def surrogate(
    new: Sequence[torch.Tensor],
    old: Sequence[torch.Tensor],
    advantage: Sequence[float],
    *,
    clip: float,
    ratio: Literal["token", "sequence"],
) -> Surrogate:
    """Compute the clipped surrogate of one group [Eq. 6].

    With ``ratio="sequence"`` rho_k is the paper's ratio of whole sequences, the product
    over tokens. With ``"token"`` each token has its own ratio, and a candidate's term is
    the mean over its tokens (DeepSeekMath's GRPO). At rho = 1 both have gradients of the
    same direction in each candidate, up to the factor of its length.

    Args:
        new: K tensors ``(T_k,)``, log-probabilities in nats, with gradient.
        old: The same under the policy that sampled, without gradient.
        advantage: Shape ``(K,)`` [Eq. 5].
    """
    terms, clipped = [], []
    for now, before, value in zip(new, old, advantage, strict=True):
        change = now - before  # (T_k,)
        rho = (change if ratio == "token" else change.sum()[None]).exp()
        plain, bounded = rho * value, rho.clamp(1 - clip, 1 + clip) * value
        terms.append(torch.minimum(plain, bounded).mean())
        clipped.append(float((bounded < plain).double().mean()))
    return Surrogate(loss=-torch.stack(terms).mean(), clipped=sum(clipped) / len(clipped))
