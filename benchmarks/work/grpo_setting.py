"""The one update that every trainer is given: the same weights, tokens, advantages and loss."""

from __future__ import annotations

import os
from typing import Any

import torch
from child import asked
from transformers import Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 8192
LEARNING_RATE = 1e-4
CLIP = 0.2
MAX_NORM = 1.0


def model() -> Any:
    """A Qwen2 with weights from a fixed seed, in float32."""
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(0)
    width, layers = asked("width"), asked("layers")
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=VOCABULARY,
            hidden_size=width,
            intermediate_size=3 * width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            num_key_value_heads=max(1, width // 128),
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
    )


def tokens() -> tuple[torch.Tensor, torch.Tensor, list[float]]:
    """A prompt ``(P,)``, its answers ``(K, R)``, and an advantage for each."""
    dice = torch.Generator().manual_seed(1)
    prompt = torch.randint(2, VOCABULARY, (asked("prompt"),), generator=dice)
    answers = torch.randint(2, VOCABULARY, (asked("k"), asked("response")), generator=dice)
    return prompt, answers, [(-1.0) ** number * (1 + number / 4) for number in range(asked("k"))]


def norm_of(model: Any, before: dict[str, torch.Tensor]) -> float:
    """How far the weights have moved, to see that all trainers did the same."""
    with torch.no_grad():
        moved = [(weight - before[name]).square().sum() for name, weight in model.named_parameters()]
        return float(torch.stack(moved).sum().sqrt())
