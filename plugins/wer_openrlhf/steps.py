"""The figures of each step: what the trainer says of its update, beside what the service saw."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from wer.measures import describe
from wer.records import Experience
from wer_openrlhf.service import Slot

_SAYS = re.compile(r"\(PPOTrainer pid=[^)]*\) INFO [^\[{]*Global step (\d+): \{(.*)\}")
"""The trainer's own line; it also logs samples, whose text may say anything."""
_FIGURE = re.compile(r"'([\w/]+)': (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))")
_NAMES = {
    "policy_loss": "loss",
    "ppo_clip_ratio": "clip_fraction",
    "entropy_loss": "entropy",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "learning_rate",
    "ppo_kl": "kl_old",
    "rollout/truncated_rate": "truncated",
    "timing/ppo_train": "update_s",
    "timing/broadcast": "sync_s",
}


def spoken(line: str) -> tuple[int, dict[str, float]] | None:
    """Read the trainer's line about a finished step: its number, from 1, and the update's figures."""
    found = _SAYS.match(line)
    if found is None:
        return None
    figures = {name: float(value) for name, value in _FIGURE.findall(found.group(2))}
    return int(found.group(1)), {
        ours: figures[theirs] for theirs, ours in _NAMES.items() if theirs in figures
    }


@define(kw_only=True)
class Steps:
    """Puts a step's figures together as the trainer reports it.

    Attributes:
        slots: The candidates rewarded so far in this launch; those that a step consumed
            come before those of the next.
        size: Candidates a step.
        scaled: Whether advantages are divided by the group's deviation.
        updates: Gradient steps a step.
    """

    slots: Sequence[Slot]
    size: int
    scaled: bool
    updates: int
    _consumed: int = field(default=0, init=False)

    def finished(self, number: int, update: Mapping[str, float]) -> tuple[int, dict[str, float]]:
        """Give the step's place in the phase, from 0, and all of its figures."""
        return number - 1, {**self._next(), **update}

    def unreported(self, rounds: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Give the last steps of a phase of so many when their lines were lost at the trainer's end."""
        left = (len(self.slots) - self._consumed) // self.size
        for place in range(rounds - left, rounds):
            yield place, self._next()

    def _next(self) -> dict[str, float]:
        """Describe the candidates of the next step."""
        slots = self.slots[self._consumed : self._consumed + self.size]
        self._consumed += len(slots)
        groups: dict[str, list[Experience]] = {}
        for slot in slots:
            groups.setdefault(slot.experience.state.id, []).append(slot.experience)
        began = min((slot.claimed for slot in slots), default=0.0)
        arrived = min((slot.written for slot in slots), default=0.0)
        written = max((slot.written for slot in slots), default=0.0)
        executed = max((slot.rewarded for slot in slots), default=0.0)
        return {
            **describe(list(groups.values()), scaled=self.scaled),
            "generation_s": written - began,
            "rollouts_s": executed - arrived,
            "steps": float(self.updates),
        }


def broken(update: Mapping[str, float]) -> list[str]:
    """Name the figures of an update that are not finite."""
    return [name for name, value in update.items() if not math.isfinite(value)]
