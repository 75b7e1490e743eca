"""Entry module of the OpenRLHF optimizer: a writer trained on GPUs by a program in a Python of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Optimizer, OptimizerSetup
from wer.errors import PluginError


@hookimpl
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:
    """Offer ``--backend openrlhf``."""
    return {"openrlhf": _openrlhf}


def _openrlhf(setup: OptimizerSetup) -> Optimizer:
    if importlib.util.find_spec("transformers") is None:
        raise PluginError(
            "the openrlhf backend needs transformers to render prompts, which this Python does not have. "
            "Install it: pip install transformers"
        )
    from wer_openrlhf.optimizer import OpenRlhf

    return OpenRlhf(setup)
