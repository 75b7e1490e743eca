"""Stage 0: the loop with an untrained writer, the cheap way to validate a verifier and a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from wer.configuration import structure
from wer.contracts import Evaluate, Model, OptimizerSetup
from wer.groups import propose_and_evaluate
from wer.records import Candidate, PhaseOutcome, RefinementState, Sampling, derive_seed
from wer.together import together
from wer.writing import parse_candidate, revision_messages, unwritten
from wer_prompted.lengths import refusals

T = TypeVar("T")


@frozen(kw_only=True)
class Options:
    """``[optimizer.prompted]``: nothing to set; an unknown key is refused."""


class Prompted:
    """Any model writes K revisions a state; nothing is learned between phases.

    Args:
        setup: Its ``open_model`` gives the writer.
    """

    learns = False

    def __init__(self, setup: OptimizerSetup) -> None:
        structure(Options, setup.options, where="optimizer.prompted")
        self._setup = setup
        self._model: Model = setup.open_model()

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Propose and evaluate, one state's group as soon as it is written.

        Raises:
            PromptTooLong: A seed state does not fit, or no state does; nothing was written
                yet. States that the loop assembled are left out instead.
        """
        refused = refusals(states, self._setup)
        fitting = [state for state in states if state.id not in refused]
        if refused and not fitting:
            raise next(iter(refused.values()))
        return await propose_and_evaluate(
            self.propose, fitting, evaluate, k=self._setup.k, seed=self._setup.seed
        )

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Ask the writer k times a state, each with a seed of its own.

        A state that the loop assembled and that does not fit gets k candidates without a skill.

        Raises:
            PromptTooLong: A seed state does not fit; nothing was written yet.
        """
        refused = refusals(states, self._setup)
        fitting = [state for state in states if state.id not in refused]
        written = iter(await together(self._ask(state, k, seed) for state in fitting))
        return [unwritten(state, k) if state.id in refused else next(written) for state in states]

    async def _ask(self, state: RefinementState, k: int, seed: int) -> Sequence[Candidate]:
        return await together(self._write(state, index, seed) for index in range(k))

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
