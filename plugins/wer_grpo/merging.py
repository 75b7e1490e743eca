"""The trained policy as an ordinary model folder."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import torch

from wer_grpo.writer import Writer


def save_merged(writer: Writer, folder: Path) -> None:
    """Write model and tokenizer as a Hugging Face folder in bfloat16, adapters added to the weights.

    The folder is there whole or not at all, since whoever reads it may not know of a kill.
    """
    model = copy.deepcopy(writer.model)
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    scratch = folder.with_name(f".{folder.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(scratch)
    writer.tokenizer.save_pretrained(scratch)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)
