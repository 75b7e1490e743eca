"""Entry module of Skill-R1: generations of skills on one task, trained on how far each improves on the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend skill_r1``, and without gradient steps ``--backend skill_r1_inference``."""
    return {"skill_r1": _trained, "skill_r1_inference": _inference}


def _trained(setup: OptimizerSetup) -> Optimizer:
    from wer_skill_r1.optimizer import trained

    return trained(setup)


def _inference(setup: OptimizerSetup) -> Optimizer:
    from wer_skill_r1.optimizer import inference

    return inference(setup)
