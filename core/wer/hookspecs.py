"""Where plugins register their parts. Hooks register; `wer.contracts` do the work.

A plugin is a module named in the entry-point group ``wer`` (see `API`) whose functions are marked
with `hookimpl`. Import torch, docker and the like inside a factory: ``wer plugin list`` and
every run call all of these hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pluggy

from wer.contracts import (
    AgentSetup,
    Environment,
    Executor,
    Model,
    ModelSetup,
    Optimizer,
    OptimizerSetup,
    Policy,
    Runner,
    RunnerSetup,
    Sandbox,
    Tracker,
    TrackerSetup,
    Verifier,
)
from wer.records import Json, PhaseOutcome, Rollout

API = (1, 0)
"""Major and minor version of what plugins build on: these hooks, `wer.contracts` and `wer.records`.

A plugin says by its entry-point group which major version it is made for: ``wer`` is 1, ``wer2``
will be 2. A minor version only adds.
"""

hookspec = pluggy.HookspecMarker("wer")
hookimpl = pluggy.HookimplMarker("wer")

Options: TypeAlias = Mapping[str, Json]


@hookspec
def wer_environments() -> Mapping[str, Callable[[Options], Environment]]:  # type: ignore[empty-body]
    """Offer environments, by the name users give to ``--env``.

    Called once, when WER starts. Every plugin's answer is merged; two plugins
    offering one name is a `PluginError` naming both. The same holds for the
    other offering hooks.

    Returns:
        Factories keyed by name; each gets the user's table ``[environment.NAME]``. A `wer.Domain`
        is one itself, and its verifier is then offered under the same name.
    """


@hookspec
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:  # type: ignore[empty-body]
    """Offer verifiers, by the name users give to ``--verifier``. Called once.

    Returns:
        Factories keyed by name.
    """


@hookspec
def wer_executors() -> Mapping[str, Callable[[Model, Options], Executor]]:  # type: ignore[empty-body]
    """Offer executors: ways to run a frozen agent around a model. Called once.

    Returns:
        Factories keyed by name; each gets the metered model of the executor's role
        and the user's table ``[executor_options]``.
    """


@hookspec
def wer_agents() -> Mapping[str, Callable[[AgentSetup], Executor]]:  # type: ignore[empty-body]
    """Offer kinds of agents that users bring in the place of a model, by the kinds of `wer.agents`. Called once.

    Returns:
        Factories keyed by ``function``, ``command`` or ``http``.
    """


@hookspec
def wer_optimizers() -> Mapping[str, Callable[[OptimizerSetup], Optimizer]]:  # type: ignore[empty-body]
    """Offer optimizers, by the name users give to ``--backend``. Called once.

    Returns:
        Factories keyed by name.
    """


@hookspec
def wer_policies() -> Mapping[str, Callable[[OptimizerSetup], Policy]]:  # type: ignore[empty-body]
    """Offer policies: weights that any optimizer may write with and train, by name. Called once.

    An optimizer opens one with ``setup.open_policy(NAME)``.

    Returns:
        Factories keyed by name; each gets the optimizer's setup with the user's table
        ``[optimizer.NAME]`` of the policy in ``options``.
    """


@hookspec
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:  # type: ignore[empty-body]
    """Offer model providers: ``PROVIDER/rest`` goes to the factory named PROVIDER.

    Called once.

    Returns:
        Factories keyed by provider; each gets the text after the first slash,
        ``name[@url]``, in a `wer.contracts.ModelSetup`. A `wer.contracts.Provider`
        around one says what its models cost and how many calls at a time help; a
        bare factory has its defaults.
    """


@hookspec
def wer_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:  # type: ignore[empty-body]
    """Offer sandboxes, by the name users give to ``--sandbox``. Called once.

    Returns:
        Factories keyed by name.
    """


@hookspec
def wer_runners() -> Mapping[str, Callable[[RunnerSetup], Runner]]:  # type: ignore[empty-body]
    """Offer places where rollouts run, by the name users give to ``--runner``. Called once.

    ``local``, the process itself, is the loop's own.

    Returns:
        Factories keyed by name.
    """


@hookspec
def wer_trackers() -> Mapping[str, Callable[[TrackerSetup], Tracker]]:  # type: ignore[empty-body]
    """Offer trackers, by the name users give to ``--track``. Called once.

    Returns:
        Factories keyed by name; each is called when a run opens that has a table
        ``[tracking.NAME]``.
    """


@hookspec
def wer_rollout_finished(rollout: Rollout, cached: bool) -> None:
    """Observe a rollout that was judged and stored. Called in the driver, once each.

    Args:
        cached: True when it was found in the store and cost nothing.
    """


@hookspec
def wer_phase_finished(phase: int, outcome: PhaseOutcome) -> None:
    """Observe the end of a training phase. Called in the driver, once a phase."""
