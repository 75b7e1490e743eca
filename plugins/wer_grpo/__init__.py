"""Entry module of the in-process GRPO optimizer: a small writer, trained with torch on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup, Policy
from wer.errors import PluginError


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend grpo``."""
    return {"grpo": _grpo}


@hookimpl
def wer_policies() -> Mapping[str, Callable[[OptimizerSetup], Policy]]:
    """Offer the weights of ``--backend grpo`` to other optimizers."""
    return {"grpo": _policy}


def _grpo(setup: OptimizerSetup) -> Optimizer:
    _prepare()

    from wer_grpo.optimizer import Grpo

    return Grpo(setup)


def _policy(setup: OptimizerSetup) -> Policy:
    _prepare()

    from wer_grpo.lent import Lent

    return Lent(setup)


def _prepare() -> None:
    missing = [
        name for name in ("torch", "transformers", "peft", "gguf") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise PluginError(
            f"the grpo backend needs {', '.join(missing)}, which this Python does not have. "
            "Install it: pip install 'wer-skills[grpo]'"
        )
    # Idle threads of torch must sleep: the executor computes on the same processors in between.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
