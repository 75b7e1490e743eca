"""What the user watches: a live line on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wer.records import Rollout, Usage

_PLAIN_EVERY_S = 15.0
_FORESEEABLE = 0.1
"""Share of a stage after which its pace so far, with what was written before, says when it will end."""


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

    def say(self, line: str) -> None:
        """Print one line; control characters and markup of hostile text are shown, not obeyed."""
        clean = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in line)
        seconds = int(self._clock() - self._begun)
        self.console.print(
            f"[dim]{seconds // 60:3d}:{seconds % 60:02d}[/dim] {escape(clean)}", soft_wrap=True
        )

    def stage(self, name: str, total: int, *, unit: str = "rollouts") -> None:
        """Begin a stage.

        Args:
            total: How many units it will take; 0 is unknown.
        """
        self.end_stage()
        self._name, self._total, self._unit = name, total, unit
        self._done = self._judged = self._passed = 0
        self._rewards = []
        self._stage_begun = self._told = self._booked = self._clock()
        self._progress.update(
            self._bar, description=escape(name), total=total or None, completed=0, state="", visible=True
        )
        self.say(f"{name}: {total} {unit}" if total else name)

    def end_stage(self) -> None:
        """End the stage that was begun, if any."""
        self.book()
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
        parts = [f"{(usage.prompt_tokens + usage.completion_tokens) / 1000:.0f} k tokens"]
        if self._judged:
            parts.insert(0, f"{100 * self._passed / self._judged:.0f} % passed")
        if self._rewards:
            parts.append(f"mean reward {sum(self._rewards) / len(self._rewards):.2f}")
        if usage.usd:
            parts.append(f"{usage.usd:.2f} USD")
        return ", ".join(parts)
