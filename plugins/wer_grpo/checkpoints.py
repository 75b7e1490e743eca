"""Checkpoints: what a phase needs to go on after a kill, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from wer.errors import OptimizerError
from wer_grpo.learner import Learner

_KEPT = 2


@frozen(kw_only=True)
class Progress:
    """How far a phase is.

    Attributes:
        done: Ids of the states that were learnt from.
        batches: How many batches they were learnt from in.
    """

    done: tuple[str, ...] = ()
    batches: int = 0


def save_learner(learner: Learner, folder: Path) -> None:
    """Write the float32 weights that learn, and Adam's moments."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: copy.contiguous() for name, copy in learner.copies.items()}, folder / "trained.safetensors"
    )
    torch.save(learner.adam.state_dict(), folder / "adam.pt")


def load_learner(learner: Learner, folder: Path) -> None:
    """Read what `save_learner` wrote.

    Raises:
        OptimizerError: The folder holds nothing of the kind, or other weights.
    """
    try:
        copies = load_file(folder / "trained.safetensors")
        adam: Mapping[str, Any] = torch.load(folder / "adam.pt", map_location="cpu", weights_only=True)
    except (OSError, SafetensorError) as error:
        raise OptimizerError(f"no trained policy can be read from {folder} ({error}).") from error
    shapes = {name: copy.shape for name, copy in copies.items()}
    if shapes != {name: copy.shape for name, copy in learner.copies.items()}:
        raise OptimizerError(
            f"the policy in {folder} was trained with other weights (another writer, lora_rank or lora_targets). "
            "Set these as they were, or start a new run."
        )
    learner.restore(copies, adam)


def write_checkpoint(learner: Learner, progress: Progress, folder: Path) -> None:
    """Write the next checkpoint of a phase; the two newest are kept."""
    for left in folder.glob(".writing-*"):  # by a process that was killed
        shutil.rmtree(left)
    scratch = folder / f".writing-{os.getpid()}"
    save_learner(learner, scratch)
    (scratch / "progress.json").write_text(json.dumps({"done": progress.done, "batches": progress.batches}))
    scratch.rename(folder / f"step-{progress.batches:05d}")
    for old in _steps(folder)[:-_KEPT]:
        shutil.rmtree(old)


def newest_checkpoint(folder: Path) -> Path | None:
    """Find the newest whole checkpoint of a phase."""
    return next(reversed(_steps(folder)), None)


def read_progress(checkpoint: Path) -> Progress:
    """Read how far the phase was."""
    found = json.loads((checkpoint / "progress.json").read_text())
    return Progress(done=tuple(found["done"]), batches=found["batches"])


def _steps(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-?????"))
