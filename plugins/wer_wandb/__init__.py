"""Entry module of the Weights & Biases tracker: a run there, or a part of one that is active already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Tracker, TrackerSetup


@hookimpl
def wer_trackers() -> Mapping[str, Callable[[TrackerSetup], Tracker]]:
    """Offer ``--track wandb``."""
    return {"wandb": _wandb}


def _wandb(setup: TrackerSetup) -> Tracker:
    from wer_wandb.tracker import open_tracker

    return open_tracker(setup)
