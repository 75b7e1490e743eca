"""Sampling: a prompt is read once, and all of its branches are decoded in one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from attrs import define, field

from wer.errors import OptimizerError
from wer.records import derive_seed
from wer_grpo.branches import Decoding, Prefill
from wer_grpo.policy import Answer, Policy


@define(kw_only=True)
class _Row:
    draws: torch.Tensor
    token_ids: list[int] = field(factory=list)
    logprobs: list[float] = field(factory=list)
    supports: list[torch.Tensor] = field(factory=list)


@torch.no_grad()
def sample(
    policy: Policy,
    prompts: Sequence[torch.Tensor],
    seeds: Sequence[int],
    *,
    k: int,
    max_tokens: int,
    end_tokens: frozenset[int],
    greedy: bool,
    tick: Callable[[int], None],
) -> list[list[Answer]]:
    """Sample k answers to each prompt, all of them side by side.

    Branch j of a prompt draws from a generator of its own, seeded with the prompt's seed
    and j, so that an answer does not depend on what is sampled beside it (up to rounding).

    Args:
        prompts: Tensors ``(P_i,)``; no padding is needed.
        seeds: One for each prompt.
        greedy: Take the most likely token instead of a drawn one.
        tick: Told the number of open branches before each step; may raise to stop.

    Returns:
        For each prompt its k answers.

    Raises:
        OptimizerError: The logits are not finite.
    """
    rows = [
        _Row(draws=_draws(derive_seed(seed, branch), max_tokens)) for seed in seeds for branch in range(k)
    ]
    prefills, lasts = [], []
    for prompt in prompts:
        tick(len(rows))
        prefill = Prefill()
        positions = torch.arange(len(prompt), device=prompt.device)[None]
        lasts.append(policy.hidden(prompt[None], positions, prefill)[0, -1:])
        prefills.append(prefill)
    layout = Decoding(prompts=prefills, rows=[k] * len(prompts))
    hidden = torch.cat([last.expand(k, -1) for last in lasts])  # (B, D)
    starts = torch.tensor([len(prompt) for prompt in prompts for _ in range(k)], device=policy.device)
    live = rows
    while True:
        tokens = _step(policy, hidden, live, greedy=greedy)
        going = torch.tensor(
            [row.token_ids[-1] not in end_tokens and len(row.token_ids) < max_tokens for row in live]
        )
        if not bool(going.any()):
            break
        if not bool(going.all()):
            live = [row for row, goes in zip(live, going.tolist(), strict=True) if goes]
            kept = going.to(policy.device)
            layout.keep(kept)
            tokens, starts = tokens[kept], starts[kept]
        tick(len(live))
        hidden = policy.hidden(tokens[:, None], (starts + layout.length)[:, None], layout)[:, 0]
        layout.length += 1
    answers = [_answer(row, policy.device) for row in rows]
    return [answers[start : start + k] for start in range(0, len(answers), k)]


def _draws(seed: int, count: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _step(policy: Policy, hidden: torch.Tensor, rows: list[_Row], *, greedy: bool) -> torch.Tensor:
    """Choose the next token of each row, record it, and give the tokens, shape ``(B,)``."""
    support = policy.choose_support(hidden)
    logprobs = policy.distribution(hidden, support)  # (B, S)
    if not bool(logprobs.isfinite().any(dim=1).all()) or bool(logprobs.isnan().any()):
        raise OptimizerError(
            "the policy's logits are not finite while sampling. Its weights are broken: go back to an "
            "earlier checkpoint, or lower learning_rate."
        )
    if greedy:
        place = logprobs.argmax(dim=1)
    else:
        draws = torch.stack([row.draws[len(row.token_ids)] for row in rows]).to(logprobs.device)
        cumulated = logprobs.double().exp().cumsum(dim=1)
        place = (cumulated < draws[:, None] * cumulated[:, -1:]).sum(dim=1)
    tokens = place if support is None else support.gather(1, place[:, None]).squeeze(1)
    values = logprobs.gather(1, place[:, None]).squeeze(1).tolist()
    for index, (row, token, value) in enumerate(zip(rows, tokens.tolist(), values, strict=True)):
        row.token_ids.append(token)
        row.logprobs.append(value)
        if support is not None:
            row.supports.append(support[index])
    return tokens


def _answer(row: _Row, device: torch.device) -> Answer:
    return Answer(
        token_ids=torch.tensor(row.token_ids, device=device),
        logprobs=torch.tensor(row.logprobs, device=device),
        support=torch.stack(row.supports) if row.supports else None,
    )
