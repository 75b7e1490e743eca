"""Where the loop looks for leaks, and what it does about them: ``leak`` in the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from wer.configuration import LeakPolicy
from wer.contracts import Environment, Referenced
from wer.leaks import Leak, Private, private, sentence
from wer.records import Candidate, RefinementState, Rollout, Skill, Task, ToolCall


@frozen(kw_only=True)
class Screen:
    """Applies the policy to what optimizers, drafters and mergers write.

    Attributes:
        policy: ``report``: published skills are searched, and what they quote is said.
            ``penalise``: a candidate that quotes values is not well formed (its R_fmt is 0).
            ``refuse``: it counts as no skill, and runs nothing.
    """

    policy: LeakPolicy
    environments: Mapping[str, Environment]
    _known: dict[str, Private] = field(factory=dict, init=False)

    def candidate(self, state: RefinementState, candidate: Candidate) -> Candidate:
        """Apply the policy to a candidate; one that was screened before stays as it is."""
        if self.policy == "report" or candidate.skill is None:
            return candidate
        leaks = self._of_task(state.task, state.evidence).leaks(candidate.skill)
        if not leaks:
            return candidate
        kept = candidate.skill if self.policy == "penalise" else None
        return evolve(candidate, skill=kept, well_formed=False, problem=sentence(leaks))

    def refusal(self, skill: Skill, tasks: Sequence[Task]) -> str:
        """Why a draft or a merged skill may not be used; empty when it may."""
        leaks = self.leaks(skill, tasks) if self.policy == "refuse" else ()
        return sentence(leaks) if leaks else ""

    def leaks(self, skill: Skill, tasks: Sequence[Task]) -> tuple[Leak, ...]:
        """Find what a skill quotes of any of these tasks' references and queries."""
        return tuple(sorted({leak for task in tasks for leak in self._of_task(task).leaks(skill)}))

    def _of_task(self, task: Task, rollouts: Sequence[Rollout] = ()) -> Private:
        if rollouts:
            return private(task, reference=self._reference(task), rollouts=rollouts)
        if task.key not in self._known:
            self._known[task.key] = private(task, reference=self._reference(task))
        return self._known[task.key]

    def _reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        environment = self.environments[task.env]
        return environment.reference(task) if isinstance(environment, Referenced) else None
