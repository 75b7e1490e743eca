"""Keeps a run's figures as they come: in the store at once, and in the trackers that the user named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import asdict, define, field

from wer.configuration import RunConfig
from wer.contracts import Tracing, Tracker, TrackerSetup
from wer.measures import describe
from wer.plugins import Plugins
from wer.records import Experience, Json, Rollout
from wer.redaction import redacted
from wer.shown import PLAIN, Shown
from wer.store import Store

TRAIN = "train"
PHASE = "phase"
EVALUATION = "evaluation"


@define(kw_only=True)
class Recorder:
    """Where optimizers, phases and the evaluation leave their figures.

    A tracker that fails is told of once and then left alone. Nowhere else does WER go on
    after an error: here the store has the figures, and a service that only shows them is
    no reason to lose hours of training.

    Attributes:
        say: Told one line about a tracker that failed.
    """

    store: Store
    say: Callable[[str], None]
    _trackers: dict[str, Tracker] = field(factory=dict, init=False)
    _stage: str = field(default="", init=False)
    _before: int = field(default=0, init=False)
    _rollouts: int = field(default=0, init=False)

    def open(self, config: RunConfig, folder: Path, plugins: Plugins) -> None:
        """Open the trackers of the configuration; here a failure is the user's to mend, and stops the run.

        Raises:
            PluginError: Nobody offers that tracker, or its library is missing.
        """
        shown = redacted(asdict(config))
        for name, options in config.tracking.items():
            setup = TrackerSetup(options=options, name=folder.name, folder=folder, config=shown)
            self._trackers[name] = plugins.trackers.make(name, setup)

    def begin(self, phase: int, stage: str = TRAIN) -> None:
        """Take the steps that follow as those of a phase.

        Args:
            stage: Of all phases together.
        """
        stages = [each for each, _, _ in self.store.metrics()]
        self._stage = f"{stage}/{phase}"
        self._before = sum(each in {f"{stage}/{earlier}" for earlier in range(phase)} for each in stages)
        self._rollouts = 0

    def rollout(self, rollout: Rollout, cached: bool) -> None:
        """Count a finished rollout for the step that is under way."""
        self._rollouts += not cached

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the figures of a step of the phase; see `wer.contracts.OptimizerSetup.record`."""
        if not self._stage:
            raise ValueError("a step was recorded before any phase began")
        row = {**metrics, "rollouts": float(self._rollouts)}
        if metrics.get("rollouts_s", 0.0) > 0:
            row["rollouts_per_s"] = self._rollouts / metrics["rollouts_s"]
        self._rollouts = 0
        self.store.put_metrics(self._stage, step, row)
        self.log(TRAIN, self._before + step, row)

    def complete(self, size: int, *, scaled: bool, shown: Shown = PLAIN) -> None:
        """Describe those steps of the phase that have no row, by the candidates that they learnt from.

        What is known of an update alone, and of its time, is lost with the process that made it.

        Args:
            size: Candidates a step, written one step after the other; 0 does nothing.
            scaled: As in `wer.measures.describe`.
            shown: How the optimizer saw them.
        """
        there = {step for stage, step, _ in self.store.metrics() if stage == self._stage}
        stored = self.store.experiences(self._stage) if size else ()
        found = [shown.experience(experience) for _, experience in stored]
        for step in range(len(found) // size if size else 0):
            if step not in there:
                row = describe(_groups(found[step * size : (step + 1) * size]), scaled=scaled)
                self.store.put_metrics(self._stage, step, row)
                self.log(TRAIN, self._before + step, row)

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Tell every tracker that still works."""
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, lambda tracker=tracker: tracker.log(stage, step, metrics))  # type: ignore[misc]

    def close(self) -> None:
        """Let every tracker write what it still holds."""
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, tracker.close)
        self._trackers.clear()

    @property
    def tracers(self) -> Mapping[str, Tracing]:
        """The trackers that are told of spans too."""
        return {name: each for name, each in self._trackers.items() if isinstance(each, Tracing)}

    def event(self, event: str, about: Mapping[str, Json]) -> None:
        """Tell them of stages; see `wer.display.Display.follow`."""
        if event in ("stage", "stage ended"):
            stage = about["name"] if event == "stage" else ""
            for name, tracer in self.tracers.items():
                self._guarded(name, lambda tracer=tracer: tracer.stage(stage))  # type: ignore[misc]

    def drop(self, name: str, error: Exception) -> None:
        """Leave a tracker alone that failed, and say so."""
        self._trackers.pop(name, None)
        self.say(
            f"tracker {name!r} failed and gets no more figures: {type(error).__name__}: {error}. "
            "The run goes on; its store has all of them."
        )

    def _guarded(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self.drop(name, error)


def _groups(experiences: Sequence[Experience]) -> Sequence[Sequence[Experience]]:
    """The candidates of each state."""
    groups: dict[str, list[Experience]] = {}
    for experience in experiences:
        groups.setdefault(experience.state.id, []).append(experience)
    return list(groups.values())
