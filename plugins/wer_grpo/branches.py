"""Attention over one prompt and K branches, so that a group never pays for its prompt K times.

All candidates of a group answer the same prompt. A branch sees the prompt and itself,
never its siblings, so the prompt's keys and values are the same for all of them. The
layouts below say who sees whom; `branch_attention` is registered with transformers as
an attention implementation and does what the layout of the call says. Gradients flow
through the shared prompt, and the result equals that of K separate sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import define, field, frozen
from torch.nn.functional import pad, scaled_dot_product_attention

NAME = "wer_branches"
_GROW = 64


@frozen(kw_only=True, eq=False)
class Packed:
    """One row ``[prompt, branch 1, ..., branch K]``, for scoring a group in one pass.

    Attributes:
        prompt: Tokens of the prompt, ``P``.
        positions: Each token's position in its own sequence, shape ``(1, P + sum R_k)``.
        seen: What the branches' tokens see, shape ``(sum R_k, P + sum R_k)``: the prompt, and
            of their own branch what came before.
    """

    prompt: int
    positions: torch.Tensor
    seen: torch.Tensor

    @classmethod
    def of(cls, prompt: int, branches: Sequence[int], device: torch.device) -> Packed:
        """Lay out a prompt of P tokens and branches of ``R_k`` tokens each."""
        spans = [torch.arange(prompt, device=device)]
        spans += [torch.arange(prompt, prompt + length, device=device) for length in branches]
        owner = torch.repeat_interleave(torch.tensor(branches, dtype=torch.long, device=device))
        own = (owner[:, None] == owner).tril()
        seen = torch.cat([own.new_ones(len(owner), prompt), own], dim=1)
        return cls(prompt=prompt, positions=torch.cat(spans)[None], seen=seen)


@define(kw_only=True)
class Prefill:
    """A plain causal pass over one prompt that keeps the keys and values.

    Attributes:
        layers: By layer index: keys and values, each ``(1, Hkv, P, D)``.
    """

    layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(factory=dict)


@define(kw_only=True)
class Decoding:
    """Rows of one new token each; consecutive rows share a prompt.

    Attributes:
        prompts: The prefilled prompts.
        rows: How many rows each prompt has; rows of a prompt are adjacent.
        length: Tokens that every row has already, its prompt excluded.
        own: By layer index: the rows' own keys and values, each ``(B, Hkv, capacity, D)``.
    """

    prompts: list[Prefill]
    rows: list[int]
    length: int = 0
    own: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(factory=dict)

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with some rows only.

        Args:
            rows: Shape ``(B,)``, true for the rows to keep.
        """
        self.rows = [int(part.sum()) for part in torch.split(rows, self.rows)]
        self.own = {layer: (key[rows], value[rows]) for layer, (key, value) in self.own.items()}

    def extend(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one token's keys and values, each ``(B, Hkv, 1, D)``, and give all of them."""
        keys, values = self.own.get(layer) or (key[:, :, :0], value[:, :, :0])
        if keys.shape[2] == self.length:
            keys, values = (pad(tensor, (0, 0, 0, _GROW)) for tensor in (keys, values))
        keys[:, :, self.length] = key[:, :, 0]
        values[:, :, self.length] = value[:, :, 0]
        self.own[layer] = keys, values
        return keys[:, :, : self.length + 1], values[:, :, : self.length + 1]


def branch_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    layout: Packed | Prefill | Decoding | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend as the call's layout says; without a layout, plain causal attention.

    Args:
        query: Shape ``(B, H, T, D)``; keys and values have ``Hkv`` heads, ``H % Hkv == 0``.
        attention_mask: Never used: the layout is the mask.
        others: What transformers passes to every implementation.

    Returns:
        Shape ``(B, T, H, D)``.

    Raises:
        ValueError: The model asks for more than attention with a scale.
    """
    for name in ("softcap", "s_aux", "position_bias", "sliding_window"):
        if others.get(name) is not None:
            raise ValueError(f"attention with {name} cannot share a prompt")
    if layout is None and query.shape[2] != key.shape[2]:
        raise ValueError(
            "this attention keeps keys and values in its layouts, not in a cache of transformers"
        )
    if isinstance(layout, Decoding):
        layer = int(module.layer_idx)  # type: ignore[arg-type]
        return _decode(query, *layout.extend(layer, key, value), layout, layer, scaling), None
    if isinstance(layout, Prefill):
        layout.layers[int(module.layer_idx)] = key, value  # type: ignore[arg-type]
    if isinstance(layout, Packed):
        return _packed(query, key, value, layout, scaling).transpose(1, 2), None
    return _causal(query, key, value, scaling).transpose(1, 2), None


def _causal(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scaling, enable_gqa=grouped
    )  # (B, H, T, D)


def _packed(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, layout: Packed, scaling: float | None
) -> torch.Tensor:
    start = layout.prompt
    on_prompt = _causal(query[:, :, :start], key[:, :, :start], value[:, :, :start], scaling)
    if query.shape[2] == start:
        return on_prompt
    on_both = scaled_dot_product_attention(
        query[:, :, start:],
        key,
        value,
        attn_mask=layout.seen,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return torch.cat([on_prompt, on_both], dim=2)


def _decode(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    layout: Decoding,
    layer: int,
    scaling: float | None,
) -> torch.Tensor:
    """Let the rows of a prompt read its keys and values in one product.

    With ``b`` rows of a prompt and ``g`` query heads a key head, the scores on the prompt
    are ``(Hkv, b * g, D) x (Hkv, D, P)``.
    """
    batch, heads, _, width = query.shape
    shared = keys.shape[1]
    grouped = query.view(batch, shared, heads // shared, width) * (scaling or width**-0.5)
    own_scores = grouped @ keys.transpose(2, 3)  # (B, Hkv, g, t)
    outputs = []
    start = 0
    for prompt, rows in zip(layout.prompts, layout.rows, strict=True):
        if rows == 0:
            continue
        here = slice(start, start + rows)
        start += rows
        prompt_keys, prompt_values = (tensor[0] for tensor in prompt.layers[layer])  # (Hkv, P, D)
        flat = grouped[here].transpose(0, 1).reshape(shared, -1, width)  # (Hkv, b * g, D)
        scores = (flat @ prompt_keys.transpose(1, 2)).view(shared, rows, heads // shared, -1)
        both = torch.cat([scores.transpose(0, 1), own_scores[here]], dim=-1)  # (b, Hkv, g, P + t)
        weights = both.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
        on_prompt, on_own = torch.split(weights, [scores.shape[-1], own_scores.shape[-1]], dim=-1)
        from_prompt = on_prompt.transpose(0, 1).reshape(shared, -1, scores.shape[-1]) @ prompt_values
        from_prompt = from_prompt.view(shared, rows, heads // shared, width).transpose(0, 1)
        outputs.append(from_prompt + on_own @ values[here])  # (b, Hkv, g, D)
    return torch.cat(outputs).reshape(batch, 1, heads, width)
