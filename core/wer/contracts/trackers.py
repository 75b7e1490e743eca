"""Who shows the figures of a run outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from attrs import frozen

from wer.records import Json, JsonObject


class Tracker(Protocol):
    """Shows a run's figures outside of it, as they come.

    The store has them all: a tracker that raises is told of once and left alone.
    """

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Take the figures of one step.

        Args:
            stage: ``train`` for update steps, ``phase`` for whole phases, ``evaluation``
                for the measured split: each counts its own steps from 0.
            step: An update step counts over all phases. A step that comes again, because
                its phase was interrupted, takes the place of the first and of all after it.
            metrics: By names that may contain slashes.
        """
        ...

    def close(self) -> None:
        """Write what is still held. Called once, at the run's end or failure."""
        ...


@frozen(kw_only=True)
class TrackerSetup:
    """What a tracker is made from.

    Attributes:
        options: The user's table ``[tracking.NAME]``, still unchecked.
        name: The run's id, which a resumed run keeps.
        folder: The run's folder.
        config: The run's configuration as JSON, without anything that looks like a secret.
    """

    options: Mapping[str, Json]
    name: str
    folder: Path
    config: JsonObject
