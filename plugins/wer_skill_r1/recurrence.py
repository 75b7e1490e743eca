"""The recurrence over generations [arXiv 2605.09359]: write, roll out, add to the history, write again."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import define, frozen

from wer.contracts import Evaluate, OptimizerSetup, Written
from wer.errors import PromptTooLong
from wer.records import Candidate, RefinementState, derive_seed
from wer.writing import parse_candidate
from wer_skill_r1.asked import Writes
from wer_skill_r1.chain import Chain


@define
class Seconds:
    """Where the time of some chains went."""

    generation_s: float = 0.0
    rollouts_s: float = 0.0


@frozen(kw_only=True)
class Recurrence:
    """Evolves tasks' skills for G generations, ``training.k``, without learning."""

    setup: OptimizerSetup
    writer: Writes

    async def starts(self, states: Sequence[RefinementState]) -> list[RefinementState]:
        """Choose where each task begins: of several states of one task the first, if its prompt fits.

        Raises:
            PromptTooLong: A state that the loop did not assemble does not fit, or no state does.
        """
        of_tasks: dict[str, RefinementState] = {}
        for state in states:
            of_tasks.setdefault(state.task.key, state)
        first = list(of_tasks.values())
        over = await self.writer.excess([Chain.begin(state).request for state in first])
        fitting = [state for state, excess in zip(first, over, strict=True) if not excess]
        for state, excess in zip(first, over, strict=True):
            if excess and (state.round == 0 or not fitting):
                raise self.refusal(state, excess)
        if len(fitting) < len(first):
            self.setup.progress(f"{len(first) - len(fitting)} of {len(first)} tasks are left out: too long")
        return fitting

    def refusal(self, state: RefinementState, excess: int) -> PromptTooLong:
        """Say that a state's history does not fit."""
        limit = self.setup.max_prompt_tokens
        return PromptTooLong(
            f"the history of task {state.task.id!r} is {excess} tokens over the limit, at most {limit}: WER never "
            "truncates evidence. Raise training.max_prompt_tokens if the writer's context allows it, lower "
            "training.n, or leave the task out."
        )

    async def evolve(
        self, states: Sequence[RefinementState], evaluate: Evaluate, spent: Seconds
    ) -> list[Chain]:
        """Run all generations of some tasks side by side; what is recorded already is not written again.

        A chain whose history no longer fits ends early, with the generations that it has.
        """
        chains = [Chain.begin(state) for state in states]
        live = list(range(len(chains)))
        for number in range(1, self.setup.k + 1):
            live = await self._fitting(chains, live, number)
            if not live:
                break
            began = time.monotonic()
            candidates = await self._write([chains[place] for place in live], evaluate)
            written = time.monotonic()
            pairs = [
                (chains[place].state, candidate) for place, candidate in zip(live, candidates, strict=True)
            ]
            for place, experience in zip(live, await evaluate(pairs), strict=True):
                chains[place] = chains[place].after(experience)
            spent.generation_s += written - began
            spent.rollouts_s += time.monotonic() - written
        return chains

    async def _fitting(self, chains: Sequence[Chain], live: Sequence[int], number: int) -> list[int]:
        over = await self.writer.excess([chains[place].request for place in live])
        fitting = [place for place, excess in zip(live, over, strict=True) if not excess]
        if len(fitting) < len(live):
            self.setup.progress(
                f"{len(live) - len(fitting)} tasks end before generation {number}: their history is over "
                f"{self.setup.max_prompt_tokens:,} prompt tokens"
            )
        return fitting

    async def _write(self, chains: Sequence[Chain], evaluate: Evaluate) -> list[Candidate]:
        recorded = {chain.state.id: evaluate.recorded(chain.state) for chain in chains}
        missing = [chain for chain in chains if not recorded[chain.state.id]]
        seeds = [derive_seed(self.setup.seed, chain.state.id) for chain in missing]
        groups = await self.writer.sample([chain.request for chain in missing], seeds, 1) if missing else []
        fresh = {
            chain.state.id: candidates(chain.state, group)
            for chain, group in zip(missing, groups, strict=True)
        }
        return [(recorded[chain.state.id] or fresh[chain.state.id])[0] for chain in chains]


def candidates(state: RefinementState, group: Sequence[Written]) -> list[Candidate]:
    """Read what was written for a state."""
    return [
        parse_candidate(
            each.text,
            state=state,
            index=index,
            token_ids=each.token_ids,
            logprobs=each.logprobs,
            usage=each.usage,
        )
        for index, each in enumerate(group)
    ]
