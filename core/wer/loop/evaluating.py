"""The optimizer's only way to spend rollouts, given by the loop to every backend alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from attrs import frozen

from wer.errors import SearchSpent
from wer.loop.rollouts import Scheduler, seeds_of
from wer.records import Candidate, Experience, RefinementState, Rollout, Unit
from wer.reward import RewardRule
from wer.shown import PLAIN, Shown
from wer.store import Store


@frozen(kw_only=True)
class Evaluation:
    """An `Evaluate` for one stage of a run.

    Attributes:
        stage: Name of the stage, such as ``train/0``; candidates are stored under it.
        n: Rollouts a candidate, with each executor.
        on_rewarded: Told each candidate's total reward.
        screen: Applies the leak policy to a candidate before it is stored or run.
        shown: How the optimizer sees the rollouts that it gets back and is paid for.
        phase: Decides the annealing weight of R_fmt.
        phases: Of the whole schedule.
    """

    stage: str
    scheduler: Scheduler
    store: Store
    rule: RewardRule
    n: int
    seed: int
    on_rewarded: Callable[[float], None] = lambda total: None
    screen: Callable[[RefinementState, Candidate], Candidate] = lambda state, candidate: candidate
    shown: Shown = PLAIN
    phase: int = 0
    phases: int = 1

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        """Store, run, judge and reward; see `wer.contracts.Evaluate`."""
        proposals = [(state, self.screen(state, candidate)) for state, candidate in proposals]
        self._record(proposals)
        count = self.n if n is None else n
        units = [self._units(state, candidate, count) for state, candidate in proposals]
        try:
            finished = iter(await self.scheduler.run([unit for each in units for unit in each]))
        except SearchSpent:
            self._keep(proposals, count)
            raise
        return [
            self._rewarded(state, candidate, tuple(next(finished) for _ in each))
            for (state, candidate), each in zip(proposals, units, strict=True)
        ]

    def _rewarded(
        self, state: RefinementState, candidate: Candidate, rollouts: tuple[Rollout, ...]
    ) -> Experience:
        rollouts = self.shown.rollouts(rollouts)
        verdicts = [rollout.verdict for rollout in rollouts]
        reward = self.rule.reward(candidate, verdicts, phase=self.phase, phases=self.phases)
        experience = Experience(state=state, candidate=candidate, rollouts=rollouts, reward=reward)
        self.store.put_experience(self.stage, experience)
        self.on_rewarded(reward.total)
        return experience

    def _units(self, state: RefinementState, candidate: Candidate, count: int) -> list[Unit]:
        if candidate.skill is None:
            return []
        seeds = seeds_of(state.task, count, run_seed=self.seed, purpose="train")
        return self.scheduler.units(state.task, candidate.skill, seeds)

    def _keep(self, proposals: Sequence[tuple[RefinementState, Candidate]], count: int) -> None:
        """Reward the candidates all of whose rollouts ended before the budget did."""
        for state, candidate in proposals:
            found = [self.scheduler.stored(unit) for unit in self._units(state, candidate, count)]
            rollouts = tuple(rollout for rollout in found if rollout is not None)
            if rollouts and len(rollouts) == len(found):
                self._rewarded(state, candidate, rollouts)

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        """The group that an interrupted run had already written for this state in this stage."""
        return self.store.group(self.stage, state.id)

    def _record(self, proposals: Sequence[tuple[RefinementState, Candidate]]) -> None:
        groups: dict[str, list[Candidate]] = {}
        for state, candidate in proposals:
            self.store.put_state(state)
            groups.setdefault(state.id, []).append(candidate)
        for group in groups.values():
            if any(a.index >= b.index for a, b in pairwise(group)):
                raise ValueError("the candidates of a state must come in the order of their index")
            self.store.put_group(self.stage, group)
