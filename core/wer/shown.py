"""What an optimizer is shown of a run: all that it learns from, selects by and is paid for passes here.

The store and every measurement have the truth. Two of the questions that the paper leaves open are
asked by showing less of it: how much noise of the verifier retention and refinement bear, and
whether a pair's evidence may begin shortly before its rollouts part.
"""

from __future__ import annotations

from attrs import evolve, frozen

from wer.records import EvidenceForm, Experience, Rollout, Verdict, derive_seed


@frozen(kw_only=True)
class Shown:
    """How one method of a run sees rollouts.

    Attributes:
        noise: Probability that a verdict is shown the other way round, rollout by rollout.
        seed: The run's. With the rollout's key it decides the flip: a resumed run has the same ones,
            and what a lower rate flips a higher one flips too.
        form: How the evidence of a state is written for the writer.
    """

    noise: float = 0.0
    seed: int = 0
    form: EvidenceForm = "verbatim"

    def flips(self, key: str) -> bool:
        """Whether the verdict of the rollout of this key is shown the other way round."""
        return derive_seed(self.seed, "verifier noise", key) < self.noise * 2**31

    def rollout(self, true: Rollout) -> Rollout:
        """A rollout with the verdict that the optimizer sees. A flipped one has no diagnostics: they would tell."""
        if not self.flips(true.key):
            return true
        verdict = Verdict(score=1.0 - true.verdict.score, passed=not true.verdict.passed)
        return evolve(true, verdict=verdict)

    def rollouts(self, true: tuple[Rollout, ...]) -> tuple[Rollout, ...]:
        """Likewise, several."""
        return tuple(map(self.rollout, true))

    def experience(self, stored: Experience) -> Experience:
        """An experience out of the store as the optimizer had it; its reward is stored as it was paid."""
        state = evolve(stored.state, evidence=self.rollouts(stored.state.evidence), form=self.form)
        return evolve(stored, state=state, rollouts=self.rollouts(stored.rollouts))


PLAIN = Shown()
"""Verdicts as they are, evidence whole."""
