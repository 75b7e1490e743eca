"""An optimizer that records two steps a phase in the counting world, and a tracker that remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from attrs import define, field

from wer import hookimpl
from wer.contracts import Evaluate, TrackerSetup
from wer.errors import WerError
from wer.measures import describe
from wer.records import PhaseOutcome, RefinementState
from wer_prompted.optimizer import Prompted


class Stepping(Prompted):
    """Learns nothing, and says of two steps a phase how they went.

    Attributes:
        die_in: The phase in which it dies after its first step; taken back when it did.
    """

    learns = True
    die_in: int | None = None

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        outcome = await super().run_phase(states, evaluate, folder)
        figures = describe([outcome.experiences])
        self._setup.record(0, {**figures, "loss": 0.5, "rollouts_s": 2.0})
        if states[0].phase == Stepping.die_in:
            Stepping.die_in = None
            raise WerError("killed by a test")
        self._setup.record(1, {**figures, "loss": 0.25, "rollouts_s": 2.0})
        return outcome


@define
class Remembering:
    """Keeps what it is told; raises from the call on that `fail_at` counts to, from 0."""

    setup: TrackerSetup
    fail_at: int | None = None
    rows: list[tuple[str, int, Mapping[str, float]]] = field(factory=list)
    calls: int = 0
    closed: int = 0

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        self.calls += 1
        if self.fail_at is not None and self.calls > self.fail_at:
            raise ConnectionError("the service hung up")
        self.rows.append((stage, step, metrics))

    def close(self) -> None:
        self.closed += 1
        if self.fail_at is not None:
            raise ConnectionError("the service hung up")


def plugin(made: list[Remembering], *, fail_at: int | None = None) -> ModuleType:
    """A plugin that offers both as ``stepping`` and ``memory``, and lists the trackers that were opened."""
    module = ModuleType("tracking_plugin")

    def remember(setup: TrackerSetup) -> Remembering:
        made.append(Remembering(setup, fail_at))
        return made[-1]

    @hookimpl
    def wer_trackers() -> Mapping[str, object]:
        return {"memory": remember}

    @hookimpl
    def wer_optimizers() -> Mapping[str, object]:
        return {"stepping": Stepping}

    module.wer_trackers = wer_trackers  # type: ignore[attr-defined]
    module.wer_optimizers = wer_optimizers  # type: ignore[attr-defined]
    return module
