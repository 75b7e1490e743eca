"""Refinement rounds: the operator applied to its own output, without learning [Eq. 2]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen

from wer.contracts import Optimizer
from wer.loop.opening import Run
from wer.loop.seeding import Scanned
from wer.records import Candidate, Experience, RefinementState, derive_seed
from wer.together import together

_STORED_TOGETHER = 24
"""States whose revisions a trained policy writes side by side and stores together: what a kill can cost."""


@frozen(kw_only=True)
class Chain:
    """One task's revisions.

    Attributes:
        best: The skill with the highest share of passes; a tie goes to the later one.
        last: Where the next round starts.
        parent: Id of the candidate behind ``last``.
    """

    best: Scanned
    last: Scanned
    parent: str | None = None


async def _nothing(rounds: int, best: Sequence[Scanned]) -> None:
    """Nobody asks what each round gave."""


async def refine(
    run: Run,
    optimizer: Optimizer,
    scanned: Sequence[Scanned],
    *,
    label: str,
    at_depth: Callable[[int, Sequence[Scanned]], Awaitable[None]] = _nothing,
) -> tuple[Scanned, ...]:
    """Revise each task's skill for the configured rounds; keep the best, never merely the last.

    Args:
        label: Names the policy (``untrained``, ``refined``): its candidates are stored apart.
        at_depth: Told what this would give after so many rounds, from 0 on.
    """
    settings = run.config.refinement
    chains = [Chain(best=task, last=task) for task in scanned]
    await at_depth(0, scanned)
    for round_ in range(settings.rounds):
        stage = run.staged(f"refine/{label}/{round_}")
        states = [
            chain.last.state(run.config.training, parent=chain.parent, round=round_) for chain in chains
        ]
        total = len(states) * settings.k * settings.n * len(run.config.executors)
        run.display.stage(f"{label}, round {round_ + 1}", total)
        groups = await _propose(run, optimizer, states, stage)
        _tell_unreadable(run, f"{label}, round {round_ + 1}", [each for group in groups for each in group])
        evaluate = run.evaluation(stage, n=settings.n, phase=run.config.training.phases - 1)
        pairs = [
            (state, candidate) for state, group in zip(states, groups, strict=True) for candidate in group
        ]
        found = iter(await evaluate(pairs))
        chains = [
            _advance(chain, [next(found) for _ in group]) for chain, group in zip(chains, groups, strict=True)
        ]
        await at_depth(round_ + 1, [chain.best for chain in chains])
    return tuple(chain.best for chain in chains)


async def _propose(
    run: Run, optimizer: Optimizer, states: Sequence[RefinementState], stage: str
) -> list[Sequence[Candidate]]:
    """Have every state's group: from the store, or written now and stored.

    A policy in memory is asked for many states at once. Of any other writer each state's
    group is stored as soon as it is written, so that none is paid for twice.
    """
    missing = [state for state in states if not run.store.group(stage, state.id)]

    async def write(part: Sequence[RefinementState]) -> None:
        written = await optimizer.propose(part, run.config.refinement.k, derive_seed(run.config.seed, stage))
        for state, group in zip(part, written, strict=True):
            run.store.put_state(state)
            run.store.put_group(stage, group)

    if optimizer.learns:
        for start in range(0, len(missing), _STORED_TOGETHER):
            await write(missing[start : start + _STORED_TOGETHER])
    else:
        await together(write([state]) for state in missing)
    return [run.store.group(stage, state.id) for state in states]


def _tell_unreadable(run: Run, stage: str, candidates: Sequence[Candidate]) -> None:
    """Say when a writer keeps so little to the format that nothing can come of it."""
    lost = [each.problem for each in candidates if each.skill is None]
    if 2 * len(lost) > len(candidates):
        run.display.say(
            f"{stage}: {len(lost)} of {len(candidates)} revisions have no skill that can be read ({lost[0]})"
        )


def _advance(chain: Chain, experiences: Sequence[Experience]) -> Chain:
    """Go on from the best candidate of the round; a round without a readable skill changes nothing."""
    readable = [found for found in experiences if found.candidate.skill is not None]
    if not readable:
        return chain
    winner = max(readable, key=lambda found: found.reward.task)
    assert winner.candidate.skill is not None
    last = Scanned(task=winner.state.task, skill=winner.candidate.skill, rollouts=winner.rollouts)
    best = last if last.share >= chain.best.share else chain.best
    return Chain(best=best, last=last, parent=winner.candidate.id)
