"""GEPA on any environment: reflective mutation and a Pareto front of candidates [arXiv 2507.19457].

The search itself is the gepa package's. Here it is started in a thread, and its best candidate is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from gepa.api import optimize
from gepa.core.callbacks import GEPACallback
from gepa.proposer.reflective_mutation.reflection_lm import StatelessReflectionLM

from wer.configuration import structure
from wer.contracts import Evaluate, OptimizerSetup
from wer.errors import InfrastructureError, SearchSpent
from wer.groups import propose_and_evaluate
from wer.records import Candidate, Experience, PhaseOutcome, RefinementState, Reward, Skill, derive_seed
from wer.together import together
from wer_gepa.adapter import COMPONENT, Adapter, named, proposed, records, revised
from wer_gepa.bridge import Bridge
from wer_gepa.options import Options
from wer_gepa.reflecting import Reflection

_UNREWARDED = Reward(fmt=0.0, task=0.0, len=0.0, total=0.0)


class Gepa:
    """Searches for one skill a domain; no weights change.

    Args:
        setup: Its ``open_model`` gives the model that reflects.
    """

    learns = False

    def __init__(self, setup: OptimizerSetup) -> None:
        self._options = structure(Options, setup.options, where="optimizer.gepa")
        self._setup = setup
        setup.open_model()  # now, so that a missing key is found before anything is paid

    async def search(
        self, states: Sequence[RefinementState], evaluate: Evaluate, rollouts: int, seed: int
    ) -> Skill:
        """Evolve the domain's skill on its training tasks; see `wer.contracts.Searching`."""
        if rollouts < 1:
            return states[0].skill
        bridge = Bridge()
        adapter = Adapter(states, evaluate=evaluate, bridge=bridge, options=self._options, rollouts=rollouts)
        best = _Best()
        try:
            await asyncio.to_thread(
                _optimize,
                list(states),
                adapter,
                best,
                reflection=Reflection(self._setup, bridge, seed),
                minibatch=self._options.minibatch,
                seed=seed,
            )
        except SearchSpent:
            pass  # the best so far was paid for, and counts
        finally:
            bridge.close(InfrastructureError("the search was interrupted"))
        self._setup.progress(best.told)
        return adapter.skill(best.text) or states[0].skill

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Reflect on each state alone and evaluate; the search over a domain comes after the phases."""
        return await propose_and_evaluate(
            self.propose, states, evaluate, k=self._setup.k, seed=self._setup.seed
        )

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Have gepa reflect on each state's own evidence, k times."""
        return await together(self._mutations(state, k, seed) for state in states)

    async def _mutations(self, state: RefinementState, k: int, seed: int) -> Sequence[Candidate]:
        base = named(state)
        own = proposed(state, 0, state.skill.body, state.skill)
        told = records(
            [Experience(state=state, candidate=own, rollouts=state.evidence, reward=_UNREWARDED)],
            diagnostics=self._options.diagnostics,
        )
        bridge = Bridge()
        mutate = StatelessReflectionLM(Reflection(self._setup, bridge, derive_seed(seed, state.id)))

        def texts() -> list[str]:
            jobs = [({COMPONENT: base.body}, {COMPONENT: told}, [COMPONENT]) for _ in range(k)]
            return [mutate.reflect(*job)[0].new_texts[COMPONENT] for job in jobs]

        try:
            written = await asyncio.to_thread(texts)
        finally:
            bridge.close(InfrastructureError("the reflection was interrupted"))
        return [proposed(state, index, text, revised(base, text)) for index, text in enumerate(written)]

    def save(self, folder: Path) -> None:
        """Nothing is trained, so nothing is written."""

    def load(self, folder: Path) -> None:
        """Nothing was written, so nothing is read."""

    async def close(self) -> None:
        """The model belongs to the run."""


class _Best:
    """The candidate with the highest mean score over all tasks; of equal ones the earliest.

    Kept as gepa finds them, because a search that a budget ends has no result.
    """

    def __init__(self) -> None:
        self.text, self.score, self.seen = "", -1.0, 0

    @property
    def told(self) -> str:
        """One line for people."""
        if not self.seen:
            return "gepa: the budget ended before the skill in force was scored"
        return f"gepa: {self.seen} candidates scored on all tasks, the best with {self.score:.3f}"

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        self.seen += 1
        if event["average_score"] > self.score:
            self.text, self.score = event["candidate"][COMPONENT], event["average_score"]


class _Quiet:
    """gepa's log: it quotes model text, and all that counts is in the store."""

    def log(self, message: str) -> None: ...


def _optimize(
    states: list[RefinementState],
    adapter: Adapter,
    best: _Best,
    *,
    reflection: Reflection,
    minibatch: int,
    seed: int,
) -> None:
    """Run the package, in a thread of its own.

    Raises:
        Exception: What ended the search, also where gepa would have gone on.
    """
    optimize(
        seed_candidate={COMPONENT: states[0].skill.body},
        trainset=states,
        adapter=adapter,
        reflection_lm=reflection,
        reflection_minibatch_size=min(minibatch, len(states)),
        stop_callbacks=adapter.spent,
        callbacks=[cast(GEPACallback, best)],  # its methods are optional
        logger=_Quiet(),
        seed=seed,
        track_best_outputs=False,
        raise_on_exception=True,
    )
    adapter.demand_unbroken()
