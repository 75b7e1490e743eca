"""Entry module of the Ray runner: rollouts on every node of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Runner, RunnerSetup
from wer.hookspecs import hookimpl


@hookimpl
def wer_runners() -> Mapping[str, Callable[[RunnerSetup], Runner]]:
    """Offer ``--runner ray``."""
    return {"ray": _ray}


def _ray(setup: RunnerSetup) -> Runner:
    import ray  # noqa: F401  # a missing library is found here, where the loop names its extra

    from wer.configuration import structure
    from wer_ray.options import RayOptions
    from wer_ray.runner import RayRunner

    return RayRunner(setup, structure(RayOptions, setup.options, where="runner_options"))
