"""A user's check as a verifier: what it is shown, and how its answer becomes a verdict."""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from types import FrameType
from typing import Any

from attrs import frozen

from wer.errors import VerifierError
from wer.records import Evidence, Json, JsonObject, Task, ToolCall, Trajectory, Verdict

PATIENCE_S = 60.0
"""Seconds that a check may take: it compares stored data."""
_SOON_S = 1.0
"""Seconds after which Ctrl-C means the check, and no more the run that it is part of."""


@frozen(kw_only=True)
class Case:
    """The task as a check sees it.

    Attributes:
        id: As in the file of tasks.
        turns: What the user said; ``query`` is the first of it.
        state: What the episode began with.
        expect: As in the file; no agent has seen it.
    """

    id: str
    domain: str
    turns: tuple[str, ...]
    state: JsonObject
    expect: Json

    @property
    def query(self) -> str:
        """The user's first message."""
        return self.turns[0]


@frozen(kw_only=True)
class Ending:
    """What an episode left behind.

    Attributes:
        state: Public attributes of the instance, as JSON, or what its ``export`` returned.
        text: The agent's last message to the user; may be empty.
        calls: Every call that the agent made, in order.
    """

    state: Json
    text: str
    calls: tuple[ToolCall, ...]


_NO_STATE = (
    " Here end.state is None: an agent with tools of its own tells the state that it left behind in its outcome, see "
    "docs/own-agents.md."
)

Check = Callable[[Any, Any], Any]
"""``check(task, end)``: a `Case` and an `Ending`; gives a bool, a number in 0..1, ``(number, text)`` or a `Verdict`."""


@frozen
class CheckVerifier:
    """A `wer.contracts.Verifier` around a check."""

    check: Check

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Ask the check; it gets copies, so that it can't change what is stored.

        Raises:
            VerifierError: It raised, gave no answer in `PATIENCE_S`, or answered with something else;
                the task is named.
        """
        if not evidence.turns:
            return Verdict(score=0.0, passed=False, diagnostics=("the episode ended before its first turn",))
        case = Case(
            id=task.id.partition("/")[2],
            domain=task.domain,
            turns=task.turns,
            state=copy.deepcopy(task.setup["state"]),
            expect=copy.deepcopy(expect),
        )
        last = evidence.turns[-1]
        calls = tuple(call for step in trajectory.steps for call in step.calls)
        end = Ending(state=copy.deepcopy(last.state), text=last.said, calls=copy.deepcopy(calls))
        try:
            with _patience():
                answer = self.check(case, end)
        except (Exception, SystemExit, TooSlow) as error:
            raise VerifierError(
                f"the check raised {type(error).__name__} on task {case.id!r}: {error}. Mend it: "
                f"whatever an agent leaves behind, a check must answer.{_NO_STATE if end.state is None else ''}"
            ) from error
        return verdict(answer, case.id)


class TooSlow(BaseException):
    """A check gave no answer in time, or till Ctrl-C. Not an `Exception`, which a check may swallow."""


@contextmanager
def _patience() -> Iterator[None]:
    """Interrupt a check that hangs, at Ctrl-C or by itself. Only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    began, usual = time.monotonic(), signal.getsignal(signal.SIGINT)

    def expired(signum: int, frame: FrameType | None) -> None:
        raise TooSlow(f"no answer within {PATIENCE_S:g} s")

    def interrupted(signum: int, frame: FrameType | None) -> None:
        if callable(usual) and time.monotonic() - began < _SOON_S:
            usual(signum, frame)
        else:
            raise TooSlow("no answer until it was interrupted")

    previous = signal.signal(signal.SIGALRM, expired)
    try:
        if callable(usual):
            signal.signal(signal.SIGINT, interrupted)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        yield
    finally:
        if callable(usual):
            signal.signal(signal.SIGINT, usual)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def verdict(answer: Any, task_id: str) -> Verdict:
    """Read what a check answered; a task is passed when its score is 1.

    Raises:
        VerifierError: It is none of what a check may answer.
    """
    if isinstance(answer, Verdict):
        return answer
    score, text = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, "")
    known = isinstance(score, Real) and isinstance(text, str)
    if not known or not math.isfinite(score) or not 0 <= score <= 1:
        raise VerifierError(
            f"the check answered {answer!r} on task {task_id!r}; expected True or False, a number from 0 to 1, "
            "(number, text), or a wer.Verdict."
        )
    lines = tuple(line for line in text.splitlines() if line.strip())
    return Verdict(score=float(score), passed=float(score) >= 1, diagnostics=lines)
