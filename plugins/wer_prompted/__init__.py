"""Entry module of the prompted optimizer: Stage 0, any model as the writer and no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend prompted``."""
    return {"prompted": _prompted}


def _prompted(setup: OptimizerSetup) -> Optimizer:
    from wer_prompted.optimizer import Prompted

    return Prompted(setup)
