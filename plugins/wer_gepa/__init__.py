"""Entry module of GEPA: the gepa package searches for a domain's skill, through WER's rollouts and budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend gepa``."""
    return {"gepa": _gepa}


def _gepa(setup: OptimizerSetup) -> Optimizer:
    from wer_gepa.optimizer import Gepa

    return Gepa(setup)
