"""A phase's plan: its prompts in whole batches, and where on disk everything of it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from attrs import frozen

from wer.records import RefinementState, derive_seed


@frozen(kw_only=True)
class Phase:
    """One phase's plan and places.

    Attributes:
        number: From 0.
        prompts: The states in the order of the prompts, filled up to whole batches.
        batch: Prompts a batch.
        folder: Of the phase.
    """

    number: int
    prompts: tuple[RefinementState, ...]
    batch: int
    folder: Path

    @property
    def trainer(self) -> Path:
        """OpenRLHF's checkpoints."""
        return self.folder / "trainer"

    @property
    def draft(self) -> Path:
        """Where OpenRLHF writes the model at the end; nobody reads it there."""
        return self.folder / ".export"

    @property
    def export(self) -> Path:
        """The model folder, there once it is whole."""
        return self.folder / "export"

    @property
    def connection(self) -> Path:
        """How the trainer's agents reach this process; there only while one serves them."""
        return self.folder / "agent" / "connection.json"

    @property
    def marker(self) -> Path:
        """There once the launch has come to its end."""
        return self.folder / "trained.json"

    @property
    def logs(self) -> Path:
        """The run's logs: the loop keeps phases in ``checkpoints/phase-N``."""
        return self.folder.parent.parent / "logs"

    @property
    def rounds(self) -> int:
        """Steps that the trainer makes."""
        return len(self.prompts) // self.batch

    def share(self, phases: int) -> tuple[float, float]:
        """Where the phase begins and ends, as shares of a training of so many phases."""
        whole = max(phases, 1)
        return self.number / whole, (self.number + 1) / whole

    def checkpoint_every(self, most: int) -> int:
        """The most rounds between checkpoints, up to a limit, with which the last round gets one."""
        return max(every for every in range(1, most + 1) if self.rounds % every == 0)


def plan(states: Sequence[RefinementState], *, folder: Path, batch: int, unit: int, seed: int) -> Phase:
    """Order the states by the run's seed and fill them up to whole batches, from their beginning.

    Args:
        batch: The most states a batch; fewer states make a smaller one.
        unit: Every batch is a multiple of it.
    """
    order = sorted(states, key=lambda state: derive_seed(seed, "order", state.id))
    size = min(batch, -(-len(order) // unit) * unit)
    missing = -len(order) % size
    return Phase(
        number=states[0].phase,
        prompts=(*order, *islice(cycle(order), missing)),
        batch=size,
        folder=folder.resolve(),
    )
