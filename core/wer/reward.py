"""What the optimizer is paid for a candidate [Eq. 4]: R = (R_fmt + R_task + R_len) / 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import field, frozen

from wer.records import Candidate, Reward, Verdict

Term: TypeAlias = Literal["fmt", "task", "len"]


def _weight(_: object, attribute: object, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{getattr(attribute, 'name', 'weight')} must lie in 0..1, got {value!r}")


def _positive(_: object, attribute: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"{getattr(attribute, 'name', 'value')} must be at least 1, got {value!r}")


def _distinct(_: object, attribute: object, value: Sequence[str]) -> None:
    if not value or len(set(value)) < len(value):
        raise ValueError(f"terms must name at least one of fmt, task, len, each once, got {list(value)!r}")


@frozen(kw_only=True)
class RewardRule:
    """``[reward]``: the terms' settings.

    Attributes:
        reasoning_budget: Words of reasoning that cost nothing.
        fmt_weight_start: Weight of R_fmt in the first phase.
        fmt_weight_end: Weight of R_fmt in the last phase; linear between
            ("annealed downward during training", paper section 3.3).
        terms: Those that are paid; fewer than three are an ablation.
    """

    reasoning_budget: int = field(default=300, validator=_positive)
    fmt_weight_start: float = field(default=1.0, validator=_weight)
    fmt_weight_end: float = field(default=0.0, validator=_weight)
    terms: tuple[Term, ...] = field(default=("fmt", "task", "len"), validator=_distinct)

    def fmt_weight(self, phase: int, phases: int) -> float:
        """The annealing weight of R_fmt in a phase, from 0."""
        done = phase / (phases - 1) if phases > 1 else 0.0
        return self.fmt_weight_start + (self.fmt_weight_end - self.fmt_weight_start) * min(1.0, done)

    def reward(self, candidate: Candidate, verdicts: Sequence[Verdict], *, phase: int, phases: int) -> Reward:
        """Score one candidate; without rollouts (no skill to run) R_task is 0."""
        fmt = 1.0 if candidate.well_formed else 0.0
        task = sum(verdict.score for verdict in verdicts) / len(verdicts) if verdicts else 0.0
        length = reasoning_score(candidate.reasoning, self.reasoning_budget)
        paid = {"fmt": self.fmt_weight(phase, phases) * fmt, "task": task, "len": length}
        total = sum(paid[term] for term in self.terms) / len(self.terms)
        return Reward(fmt=fmt, task=task, len=length, total=total, terms=self.terms)


def reasoning_score(reasoning: str, budget: int) -> float:
    """R_len: 0 for empty reasoning, 1 within the budget, then linearly down to 0 at twice the budget."""
    words = len(reasoning.split())
    if words == 0:
        return 0.0
    return min(1.0, max(0.0, 2.0 - words / budget))
