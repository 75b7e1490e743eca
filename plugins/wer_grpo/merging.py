"""The trained policy as an ordinary model folder."""

from __future__ import annotations

import copy
from pathlib import Path

import torch

from wer_grpo.writer import Writer


def save_merged(writer: Writer, folder: Path) -> None:
    """Write model and tokenizer as a Hugging Face folder in bfloat16, adapters added to the weights."""
    model = copy.deepcopy(writer.model)
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    model.to(torch.bfloat16).save_pretrained(folder)
    writer.tokenizer.save_pretrained(folder)
