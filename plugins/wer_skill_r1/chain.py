"""One task's recurrence: each skill is rolled out, and the next is written from all that happened so far."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from wer.contracts import Lesson
from wer.records import Experience, Message, RefinementState
from wer.writing import evolution_messages
from wer_skill_r1.advantages import advantages
from wer_skill_r1.history import generation, rewards


@frozen(kw_only=True)
class Chain:
    """The generations of one task so far.

    Attributes:
        state: What the next skill is asked for; its evidence is every rollout of the last one.
        history: H, a block a generation; the first is the skill that the task came with.
        requests: What each generation's skill was written from.
        experiences: The generations, with their rollouts.
    """

    state: RefinementState
    history: tuple[str, ...]
    requests: tuple[tuple[Message, ...], ...] = ()
    experiences: tuple[Experience, ...] = ()

    @classmethod
    def begin(cls, state: RefinementState, past: Sequence[str] = ()) -> Chain:
        """Begin with the skill in force; the past is what came before it."""
        now = generation(len(past), state.skill, state.evidence)
        return cls(state=state, history=(*past, now))

    @property
    def request(self) -> tuple[Message, ...]:
        """Ask for the next skill, ``s_{g+1} ~ pi(. | x, H)``."""
        return evolution_messages(self.state.task, self.history)

    def after(self, experience: Experience) -> Chain:
        """Add a generation to the history. One without a skill leaves the skill in force as it was."""
        candidate = experience.candidate
        block = generation(len(self.history), candidate.skill, experience.rollouts, problem=candidate.problem)
        state = evolve(self.state, parent=candidate.id, round=self.state.round + 1)
        if candidate.skill is not None:
            state = evolve(state, skill=candidate.skill, evidence=experience.rollouts)
        return Chain(
            state=state,
            history=(*self.history, block),
            requests=(*self.requests, self.request),
            experiences=(*self.experiences, experience),
        )

    @property
    def rewards(self) -> tuple[tuple[float, ...], ...]:
        """r(g,i): a row a generation, the verifier's score of each rollout."""
        return tuple(rewards(each.rollouts) for each in self.experiences)

    def lessons(self, weight: float) -> list[Lesson]:
        """What the policy learns from: each generation's skill, with the advantages of its rollouts."""
        worth = advantages(self.rewards, weight)
        return [
            Lesson(request=request, token_ids=each.candidate.token_ids, advantages=values)
            for request, each, values in zip(self.requests, self.experiences, worth, strict=True)
        ]
