"""Who shows the figures of a run outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

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


class Tell(Protocol):
    """Takes what is known of a piece of work only at its end."""

    def __call__(self, **attributes: Json) -> None:
        """Add attributes."""
        ...


@runtime_checkable
class Tracing(Protocol):
    """A tracker that is also told when work begins and ends: the spans of a trace.

    What it is told holds names, counts and verdicts, and no text of a prompt, a skill or a reply. One
    that raises is told of once and left alone, like any tracker.
    """

    def stage(self, name: str) -> None:
        """Begin a stage of the run, which ends the one before; "" only ends it."""
        ...

    def span(self, work: str, attributes: Mapping[str, Json]) -> AbstractContextManager[Tell]:
        """Surround a piece of work, which others may lie inside of; an exception that passes through is its failure.

        Args:
            work: ``rollout`` (``task``, ``domain``, ``skill``, ``seed``; at its end ``tries``, ``passed``
                and ``score``); inside of it ``lease``, the wait for an episode of a sandbox (``task``,
                ``attempt``), and ``model``, a call (``role``, ``provider``, ``model``, ``attempt``,
                ``temperature``, ``top_p``, ``max_tokens``, ``seed``; at its end ``finish``,
                ``prompt_tokens``, ``completion_tokens``, ``cached_tokens`` and ``usd``). A model is also
                called outside of rollouts. Later versions may surround more.
        """
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
