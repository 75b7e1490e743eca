"""Entry module of Trace2Skill: analysts patch one base skill from its trajectories, and no weights change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend trace2skill``."""
    return {"trace2skill": _trace2skill}


def _trace2skill(setup: OptimizerSetup) -> Optimizer:
    from wer_trace2skill.optimizer import Trace2Skill

    return Trace2Skill(setup)
