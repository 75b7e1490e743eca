"""The advantage and the clipped surrogate of GRPO [Eq. 5 and 6]: no critic, and no KL unless it is asked for."""

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
        divergence: Mean over the candidates of `divergence`; 0 without a reference.
    """

    loss: torch.Tensor
    clipped: float
    divergence: float


def surrogate(
    new: Sequence[torch.Tensor],
    old: Sequence[torch.Tensor],
    advantage: Sequence[float],
    *,
    clip: float,
    ratio: Literal["token", "sequence"],
    kl: float = 0.0,
    reference: Sequence[torch.Tensor] | None = None,
) -> Surrogate:
    """Compute the clipped surrogate of one group [Eq. 6], minus ``kl`` times the divergence from a reference.

    With ``ratio="sequence"`` rho_k is the paper's ratio of whole sequences, the product
    over tokens. With ``"token"`` each token has its own ratio, and a candidate's term is
    the mean over its tokens (DeepSeekMath's GRPO). At rho = 1 both have gradients of the
    same direction in each candidate, up to the factor of its length.

    Args:
        new: K tensors ``(T_k,)``, log-probabilities in nats, with gradient.
        old: The same under the policy that sampled, without gradient.
        advantage: Shape ``(K,)`` [Eq. 5].
        reference: The same as ``old`` under the reference policy; needed when ``kl`` is not 0.
    """
    terms, clipped = [], []
    for now, before, value in zip(new, old, advantage, strict=True):
        change = now - before  # (T_k,)
        rho = (change if ratio == "token" else change.sum()[None]).exp()
        plain, bounded = rho * value, rho.clamp(1 - clip, 1 + clip) * value
        terms.append(torch.minimum(plain, bounded).mean())
        clipped.append(float((bounded < plain).double().mean()))
    loss = -torch.stack(terms).mean()
    far = 0.0
    if kl and reference is not None:
        penalty = torch.stack(
            [divergence(now, there) for now, there in zip(new, reference, strict=True)]
        ).mean()
        loss, far = loss + kl * penalty, float(penalty.detach())
    return Surrogate(loss=loss, clipped=sum(clipped) / len(clipped), divergence=far)


def divergence(new: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Estimate KL(pi || pi_ref) from one candidate, as GRPO does (DeepSeekMath, Eq. 4): unbiased, never negative.

    Args:
        new: Shape ``(T,)``, log-probabilities in nats of the sampled tokens.
        reference: The same under the reference policy.

    Returns:
        Scalar: the mean over tokens of ``r - log r - 1`` with ``r = pi_ref / pi``.
    """
    change = reference - new  # (T,)
    return (change.exp() - change - 1.0).mean()
