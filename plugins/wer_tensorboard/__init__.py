"""Entry module of the TensorBoard tracker: event files in the run's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Tracker, TrackerSetup


@hookimpl
def wer_trackers() -> Mapping[str, Callable[[TrackerSetup], Tracker]]:
    """Offer ``--track tensorboard``."""
    return {"tensorboard": _tensorboard}


def _tensorboard(setup: TrackerSetup) -> Tracker:
    from wer_tensorboard.tracker import TensorBoard

    return TensorBoard(setup)
