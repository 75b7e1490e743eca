"""A phase of an optimizer that learns nothing: every state's group is written, and evaluated at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from wer.contracts import Evaluate
from wer.records import Candidate, Experience, PhaseOutcome, RefinementState, derive_seed
from wer.together import together

Propose: TypeAlias = Callable[[Sequence[RefinementState], int, int], Awaitable[Sequence[Sequence[Candidate]]]]
"""`wer.contracts.Optimizer.propose`."""


async def propose_and_evaluate(
    propose: Propose, states: Sequence[RefinementState], evaluate: Evaluate, *, k: int, seed: int
) -> PhaseOutcome:
    """Have each state's k candidates, stored or written now, and evaluate a group as soon as it is there."""

    async def group(state: RefinementState) -> Sequence[Experience]:
        written = evaluate.recorded(state)
        if not written:
            [written] = await propose([state], k, derive_seed(seed, state.id))
        return await evaluate([(state, candidate) for candidate in written])

    groups = await together(group(state) for state in states)
    return PhaseOutcome(experiences=tuple(found for group in groups for found in group))
