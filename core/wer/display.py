"""What the user watches: a live line on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wer.records import Json, Rollout, Usage
from wer.redaction import hidden

_PLAIN_EVERY_S = 15.0
_FURTHER_LINE = "\n         "
_FORESEEABLE = 0.1
"""Share of a stage after which its pace so far, with what was written before, says when it will end."""

Follower: TypeAlias = Callable[[str, Mapping[str, Json]], None]


class Display:
    """Shows the stage, rollouts done and left, pass rate, spend and time left.

    Args:
        console: Where to write; stderr keeps stdout for results.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._spent: Callable[[], Usage] = Usage
        self._timed: Callable[[str, float], None] = lambda stage, seconds: None
        self._followers: tuple[Follower, ...] = ()
        self._clock = clock
        self._begun = clock()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._bar = self._progress.add_task("", total=None, state="", visible=False)
        self._name, self._unit = "", "rollouts"
        self._total = self._done = self._judged = self._passed = 0
        self._seen: set[str] | None = None
        self._rewards: list[float] = []
        self._stage_begun = self._told = self._booked = clock()

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def watch(self, spent: Callable[[], Usage], timed: Callable[[str, float], None]) -> None:
        """From now on show this spend, and tell the seconds that each stage takes, a part at a time."""
        self._spent, self._timed = spent, timed

    def follow(self, *followers: Follower) -> None:
        """From now on also tell these, in the place of those before.

        Each gets ``said`` with its ``line``, ``stage`` with ``name``, ``total`` and ``unit``, and
        ``stage ended`` with ``name`` and ``seconds``.
        """
        self._followers = followers

    def _tell(self, event: str, **about: Json) -> None:
        for follower in self._followers:
            follower(event, about)

    def say(self, line: str) -> None:
        """Print one line; control characters and markup of hostile text are shown, not obeyed."""
        shown = hidden(line)
        clean = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in shown)
        clean = clean.replace("\n", _FURTHER_LINE)  # no line of a quoted text may pass for one of ours
        self._tell("said", line=clean)
        seconds = int(self._clock() - self._begun)
        self.console.print(
            f"[dim]{seconds // 60:3d}:{seconds % 60:02d}[/dim] {escape(clean)}", soft_wrap=True
        )

    def stage(self, name: str, total: int, *, unit: str = "rollouts", once: bool = False) -> None:
        """Begin a stage.

        Args:
            total: How many units it will take; 0 is unknown.
            once: Whether a rollout that is asked for again counts once, as it is paid once.
        """
        self.end_stage()
        self._name, self._total, self._unit = name, total, unit
        self._done = self._judged = self._passed = 0
        self._seen = set() if once else None
        self._rewards = []
        self._stage_begun = self._told = self._booked = self._clock()
        self._progress.update(
            self._bar, description=escape(name), total=total or None, completed=0, state="", visible=True
        )
        self._tell("stage", name=name, total=total, unit=unit)
        self.say(f"{name}: {total} {unit}" if total else name)

    def end_stage(self) -> None:
        """End the stage that was begun, if any."""
        self.book()
        if self._name:
            self._tell("stage ended", name=self._name, seconds=round(self._clock() - self._stage_begun, 3))
        self._name = ""
        self._progress.update(self._bar, visible=False)  # or it would be drawn once more beside a result

    def book(self) -> None:
        """Tell the time that the stage took since this was told last."""
        if self._name:
            now = self._clock()
            self._timed(self._name, now - self._booked)
            self._booked = now

    def rollout(self, rollout: Rollout, cached: bool) -> None:
        """Count one finished rollout of the stage."""
        if self._seen is not None:
            if rollout.key in self._seen:
                return
            self._seen.add(rollout.key)
        self._judged += 1
        self._passed += rollout.verdict.passed
        self.advance()

    def reward(self, total: float) -> None:
        """Note the reward of a candidate of the stage."""
        self._rewards.append(total)

    def advance(self) -> None:
        """Count one finished unit of the stage."""
        self.reached(self._done + 1)

    def reached(self, done: int) -> None:
        """Show that so many units of the stage are finished."""
        self._done = done
        self._progress.update(self._bar, completed=self._done, state=self._state())
        now = self._clock()
        if not self.console.is_terminal and now - self._told >= _PLAIN_EVERY_S:
            self._told = now
            left = (now - self._stage_begun) / max(1, self._done) * max(0, self._total - self._done)
            begun = self._total and self._done >= _FORESEEABLE * self._total
            until = f", {left:.0f} s left in this stage" if begun else ""
            self.say(f"{self._name}: {self._done}/{self._total or '?'} {self._unit}, {self._state()}{until}")

    def _state(self) -> str:
        usage = self._spent()
        known = usage.prompt_tokens + usage.completion_tokens
        parts = [f"{known / 1000:.0f} k tokens"] if known or not usage.untold else []
        if self._judged:
            parts.insert(0, f"{100 * self._passed / self._judged:.0f} % passed")
        if self._rewards:
            parts.append(f"mean reward {sum(self._rewards) / len(self._rewards):.2f}")
        if usage.usd:
            parts.append(f"{usage.usd:.2f} USD")
        return ", ".join(parts)
