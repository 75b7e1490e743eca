"""Entry module of the in-process GRPO optimizer: a small writer, trained with torch on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup
from wer.errors import PluginError


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend grpo``."""
    return {"grpo": _grpo}


def _grpo(setup: OptimizerSetup) -> Optimizer:
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

    from wer_grpo.optimizer import Grpo

    return Grpo(setup)
