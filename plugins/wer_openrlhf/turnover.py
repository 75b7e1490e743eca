"""Carries a checkpoint of DeepSpeed into the next phase. Runs in OpenRLHF's Python, beside torch.

The weights and Adam's moments go on as they are (hard links). The trainer's place in its prompts
does not: OpenRLHF resumes there, and would skip as many of the new phase's prompts. Steps are
counted anew, and the schedule begins anew, since each phase brings its own piece.

    python turnover.py SOURCE TARGET RATE
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

CARRIED = "carried"
"""A name that no step of the new phase has: DeepSpeed would write into the linked files."""


def carry(source: Path, target: Path, rate: float) -> None:
    """Write the newest checkpoint below ``source`` to ``target``, at the beginning of its prompts.

    Args:
        rate: Learning rate at which the next phase begins.
    """
    tag = (source / "latest").read_text("utf-8").strip()
    part = target / f".{CARRIED}"
    for left in (part, target / CARRIED):
        shutil.rmtree(left, ignore_errors=True)
    part.mkdir(parents=True)
    for file in sorted((source / tag).iterdir()):
        if file.name.endswith("_model_states.pt"):
            state = torch.load(file, map_location="cpu", weights_only=False, mmap=True)
            torch.save(_turned(state, rate), part / file.name)
        else:
            _link(file, part / file.name)
    part.rename(target / CARRIED)
    latest = target / ".latest"
    latest.write_text(CARRIED, "utf-8")
    latest.rename(target / "latest")


def _turned(state: dict[str, Any], rate: float) -> dict[str, Any]:
    schedule = dict(state["lr_scheduler"])
    count = len(schedule["base_lrs"])
    schedule |= {"base_lrs": [rate] * count, "_last_lr": [rate] * count, "last_epoch": 0, "_step_count": 1}
    begin = {"episode": 0, "global_step": 0, "total_consumed_prompts": 0, "data_loader_state_dict": {}}
    return {**state, **begin, "lr_scheduler": schedule}


def _link(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except OSError:  # another disk
        shutil.copy2(file, to)


if __name__ == "__main__":
    carry(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
