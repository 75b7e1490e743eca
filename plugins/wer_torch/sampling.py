"""How one token is chosen from a row's logits."""

from __future__ import annotations

import torch

from wer.records import Sampling


def choose(
    logits: torch.Tensor, allowed: torch.Tensor | None, sampling: Sampling, dice: torch.Generator
) -> int:
    """Choose a token: temperature first, then top-k, then top-p, then one draw.

    Args:
        logits: Shape ``(V,)``, float32, on the CPU.
        allowed: Ids of the tokens that may follow, or None for all.
        dice: The row's own generator, so that a row does not depend on its neighbours.

    Raises:
        ValueError: The logits are not finite.
    """
    tokens = allowed
    scores = logits if tokens is None else logits[tokens]
    if not bool(scores.isfinite().all()):
        raise ValueError("the model's logits are not finite")
    if sampling.temperature == 0:
        place = int(scores.argmax())
        return place if tokens is None else int(tokens[place])
    scores = scores / sampling.temperature
    if 0 < sampling.top_k < len(scores) or sampling.top_p < 1:
        count = min(sampling.top_k or len(scores), len(scores))
        scores, order = scores.topk(count)
        tokens = order if tokens is None else tokens[order]
    chances = scores.double().softmax(dim=0)
    if sampling.top_p < 1:
        before = chances.cumsum(dim=0) - chances
        chances = chances * (before < sampling.top_p)
    cumulated = chances.cumsum(dim=0)
    draw = torch.rand(1, generator=dice, dtype=torch.float64) * cumulated[-1]
    place = min(int(torch.searchsorted(cumulated, draw, right=True)), len(chances) - 1)
    return place if tokens is None else int(tokens[place])
