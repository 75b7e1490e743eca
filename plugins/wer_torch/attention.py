"""Attention over rows of different lengths in one pass, without padding.

The tokens of all rows lie side by side in one sequence, so that the weights are read
once for all of them. Keys and values live in one block a row, allocated once; here every
row's part of the sequence is appended to its block and attends to that block alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import field, frozen
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

NAME = "wer_rows"
_FOLDED = 32  # tokens of a row up to which folding was faster, on a CPU


@frozen(kw_only=True, eq=False)
class Segment:
    """The tokens of one row in this pass.

    Attributes:
        block: The row's keys and values, ``(layers, 2, Hkv, capacity, D)``.
        start: Tokens that the block holds already.
        count: Tokens of this pass, ``T``.
        mask: Added to the scores, ``(T, start + T)``; None when every token is seen.
    """

    block: torch.Tensor
    start: int
    count: int
    mask: torch.Tensor | None = field(init=False)
    _stacked: dict[int, torch.Tensor] = field(init=False, factory=dict)

    @mask.default
    def _causal(self) -> torch.Tensor | None:
        if self.count == 1:
            return None
        hidden = torch.full(
            (self.count, self.start + self.count),
            -torch.inf,
            dtype=self.block.dtype,
            device=self.block.device,
        )
        return hidden.triu(self.start + 1)

    def mask_of(self, group: int) -> torch.Tensor | None:
        """The mask when `group` heads are stacked, ``(group * T, start + T)``."""
        if self.mask is not None and group not in self._stacked:
            self._stacked[group] = self.mask.repeat(group, 1)
        return self._stacked.get(group)

    @property
    def end(self) -> int:
        """The position after its last token, where the row's next segment starts."""
        return self.start + self.count


def positions(segments: Sequence[Segment], device: torch.device) -> torch.Tensor:
    """Give each token its position in its own row, shape ``(1, N)``."""
    return torch.cat([torch.arange(part.start, part.end, device=device) for part in segments])[None]


def rows_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    segments: Sequence[Segment],
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Append each row's keys and values to its block, and let the row attend to it.

    Args:
        query: Shape ``(1, H, N, D)``; keys and values have ``Hkv`` heads, ``H % Hkv == 0``.
        attention_mask: Never used: the segments are the mask.
        segments: Their counts add up to ``N``.
        others: What transformers passes to every implementation.

    Returns:
        Shape ``(1, N, H, D)``.

    Raises:
        ValueError: The model asks for more than attention with a scale.
    """
    for name in ("softcap", "s_aux", "position_bias", "sliding_window"):
        if others.get(name) is not None:
            raise ValueError(f"models with {name} are not supported by this engine")
    heads, width = query.shape[1], query.shape[3]
    output = torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format)  # (1, N, H, D)
    at = 0
    for part in segments:
        here = slice(at, at + part.count)
        at += part.count
        keys, values = part.block[module.layer_idx]  # type: ignore[index]
        keys[:, part.start : part.end] = key[0, :, here]
        values[:, part.start : part.end] = value[0, :, here]
        keys, values = keys[None, :, : part.end], values[None, :, : part.end]
        asked = query[:, :, here]  # (1, H, T, D)
        if part.count <= _FOLDED:  # heads that share keys become queries of one head
            group = heads // keys.shape[1]
            found = scaled_dot_product_attention(
                asked.reshape(1, keys.shape[1], group * part.count, width),
                keys,
                values,
                attn_mask=part.mask_of(group),
                scale=scaling,
            ).view(1, heads, part.count, width)
        else:
            found = scaled_dot_product_attention(
                asked, keys, values, attn_mask=part.mask, scale=scaling, enable_gqa=heads != keys.shape[1]
            )
        output[:, here] = found.transpose(1, 2)
    return output, None


AttentionInterface.register(NAME, rows_attention)
