"""Stage 0: the loop with an untrained writer, the cheap way to validate a verifier and a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from wer.configuration import structure
from wer.contracts import Evaluate, Model, OptimizerSetup
from wer.records import Candidate, Experience, PhaseOutcome, RefinementState, Sampling, derive_seed
from wer.writing import parse_candidate, revision_messages


@frozen(kw_only=True)
class Options:
    """``[optimizer.prompted]``: nothing to set; an unknown key is refused."""


class Prompted:
    """Any model writes K revisions a state; nothing is learned between phases.

    Args:
        setup: Its ``open_model`` gives the writer.
    """

    def __init__(self, setup: OptimizerSetup) -> None:
        structure(Options, setup.options, where="optimizer.prompted")
        self._setup = setup
        self._model: Model = setup.open_model()

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Propose and evaluate, one state's group as soon as it is written."""
        experiences = await asyncio.gather(*(self._group(state, evaluate) for state in states))
        return PhaseOutcome(experiences=tuple(found for group in experiences for found in group))

    async def _group(self, state: RefinementState, evaluate: Evaluate) -> Sequence[Experience]:
        group = evaluate.recorded(state)
        if not group:
            seed = derive_seed(self._setup.seed, state.id)
            (group,) = await self.propose([state], self._setup.k, seed)
        return await evaluate([(state, candidate) for candidate in group])

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Ask the writer k times a state, each with a seed of its own."""
        asked = [self._write(state, index, seed) for state in states for index in range(k)]
        written = iter(await asyncio.gather(*asked))
        return [[next(written) for _ in range(k)] for _ in states]

    async def _write(self, state: RefinementState, index: int, seed: int) -> Candidate:
        sampling = Sampling(
            temperature=self._setup.temperature,
            top_k=self._setup.top_k,
            max_tokens=self._setup.max_response_tokens,
            seed=derive_seed(seed, state.id, index),
        )
        reply = await self._model.complete(revision_messages(state), (), sampling)
        return parse_candidate(reply.text, state=state, index=index, usage=reply.usage)

    def save(self, folder: Path) -> None:
        """Nothing is trained, so nothing is written."""

    def load(self, folder: Path) -> None:
        """Nothing was written, so nothing is read."""

    async def close(self) -> None:
        """The model belongs to the run."""
