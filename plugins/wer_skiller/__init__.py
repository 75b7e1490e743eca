"""Entry module of SKILLER: a strong model as critic and actor edits a skill bundle, and no weights change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend skiller``."""
    return {"skiller": _skiller}


def _skiller(setup: OptimizerSetup) -> Optimizer:
    from wer_skiller.optimizer import Skiller

    return Skiller(setup)
