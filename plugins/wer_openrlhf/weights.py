"""Whether the policy's weights are here, whole, and small enough for disk and GPUs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from wer_openrlhf.estimates import disk_bytes, logits_bytes, parameters, trainer_bytes
from wer_openrlhf.machine import Machine
from wer_openrlhf.options import OpenRlhfOptions


def problems(
    options: OpenRlhfOptions, model: str, tokens: int, folder: Path, machine: Machine
) -> Iterator[str]:
    """Say what is wrong with the weights, a line each.

    Args:
        model: A Hugging Face folder, or a name on the hub.
        tokens: Of the longest sequence, prompt and answer.
        folder: Where checkpoints go.
    """
    where = _snapshot(model)
    if where is None:
        yield (
            f"no weights of the writer {model!r} here. Download them first (hf download {model}), or give a "
            "Hugging Face folder with --writer."
        )
        return
    try:
        config = json.loads((where / "config.json").read_text("utf-8"))
        weights = parameters(where)
    except (OSError, ValueError) as error:
        yield f"the writer {model!r} cannot be read: {error}. Download it again."
        return
    if not config.get("architectures"):
        yield f"the writer {model!r} names no architecture in its config.json: vLLM cannot load it."
    yield from _disk(weights, folder)
    yield from _memory(options, machine, weights, tokens, int(config.get("vocab_size", 0)))


def _memory(
    options: OpenRlhfOptions, machine: Machine, weights: int, tokens: int, vocabulary: int
) -> Iterator[str]:
    """Compare what is sure to be needed with the smallest GPU; activations come on top."""
    if not machine.gpus:
        return
    static, logits = trainer_bytes(weights, options), logits_bytes(tokens, vocabulary, options)
    if static + logits > (have := min(machine.gpus)):
        yield (
            f"on each GPU weights, gradients and Adam's state take {static / 1e9:.0f} GB and the logits of "
            f"{tokens:,} tokens {logits / 1e9:.0f} GB, and the smallest has {have / 1e9:.0f} GB. In "
            "[optimizer.openrlhf] set zero_stage = 3, adam_offload = true or log_entropy = false, or lower "
            "training.max_prompt_tokens."
        )


def _disk(weights: int, folder: Path) -> Iterator[str]:
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.is_dir())
    need, free = disk_bytes(weights), shutil.disk_usage(there).free
    if free < need:
        yield (
            f"a phase needs {need / 1e9:.0f} GB of disk for checkpoints and the trained model, and {there} has "
            f"{free / 1e9:.0f} GB left. Make room, or put --runs on another disk."
        )


def _snapshot(model: str) -> Path | None:
    """Find a model's folder: the one named, or the hub's cache of that name. Nothing is downloaded."""
    folder = Path(model).expanduser()
    if (folder / "config.json").is_file():
        return folder
    if folder.is_dir() or folder.is_absolute() or model.count("/") != 1:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):
        return None
