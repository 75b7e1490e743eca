"""An optimizer over the stand-in for OpenRLHF, and an evaluation that remembers as a run's store does."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from support.tiny_writer import setup

from wer.records import Candidate, Experience, RefinementState, Reward
from wer_openrlhf.optimizer import OpenRlhf

STAND_IN = Path(__file__).parent / "stand_in_openrlhf"


class PaidByLetters:
    """Pays for an ``a``; keeps what was written, as a run's store does."""

    def __init__(self, fault: Exception | None = None, hold: asyncio.Event | None = None) -> None:
        self.written: dict[tuple[str, int], Candidate] = {}
        self.evaluated: list[tuple[str, int]] = []
        self.fault = fault
        self.hold = hold
        self.eight = asyncio.Event()

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        return [self.written[key] for key in sorted(self.written) if key[0] == state.id]

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        found = []
        for state, candidate in proposals:
            self.written.setdefault((state.id, candidate.index), candidate)
            self.evaluated.append((state.id, candidate.index))
            if len(self.written) == 8:
                self.eight.set()
            if self.hold is not None and len(self.evaluated) > 6:
                await self.hold.wait()
            if self.fault is not None and len(self.evaluated) > 3:
                raise self.fault
            paid = candidate.text.count("a") / 8
            reward = Reward(fmt=0.0, task=paid, len=0.0, total=paid / 3)
            found.append(Experience(state=state, candidate=candidate, rollouts=(), reward=reward))
        return found


def optimizer(writer: Path, *, options: Mapping[str, Any] | None = None, **changes: Any) -> OpenRlhf:
    table = {"python": sys.executable, "batch": 2, **(options or {})}
    made = setup(writer, **{"max_prompt_tokens": 8000, "max_response_tokens": 8, **changes})
    return OpenRlhf(evolve(made, options=table))


def phase(folder: Path, number: int = 0) -> Path:
    return folder / "checkpoints" / f"phase-{number}"


async def unchecked(*_: Any, **__: Any) -> None:
    """In the place of the preflight: the Python that runs the tests has no OpenRLHF to look at."""
