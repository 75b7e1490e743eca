"""A check: a sentence that holds for a part or not, with the fault and its remedy where it does not."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Literal, TypeVar

from attrs import field, frozen

from wer.errors import WerError
from wer.plugins import Plugins
from wer.records import Json

S = TypeVar("S")

OPENS = "it can be made"
"""The first check of every part; the others need a part."""


UNREACHED = "it could not be opened"
"""Said of every check that was not reached because the first did not hold."""


@frozen(kw_only=True)
class Finding:
    """How one check of one part went.

    Attributes:
        part: Kind and name, such as ``environment bfcl``.
        sentence: What was checked.
        detail: What was wrong; of a check that holds, what is worth knowing.
        remedy: What to do about a fault.
    """

    part: str
    sentence: str
    status: Literal["ok", "failed", "not applicable"]
    detail: str = ""
    remedy: str = ""


class Fault(Exception):
    """A check does not hold.

    Attributes:
        why: What happened, and what was expected.
        remedy: What the part's author does about it.
    """

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


class NotApplicable(Exception):
    """A check has nothing to look at here, and why."""


@frozen(kw_only=True)
class Settings:
    """What a check may be told.

    Attributes:
        sandbox: As in a run.
        options: The part's own table, still unchecked.
        config: A ``wer.toml``, whose tables of environments and optimizers come below the options.
        model: The model that is checked, ``provider/name[@url]``; or the weights' folder that an
            optimizer trains.
        environment: Whose tasks a verifier judges; empty is each that names it as its own.
        verifier: Judges in the place of the environment's own.
        tasks: The most tasks a domain that episodes are tried on.
    """

    sandbox: str = "auto"
    options: Mapping[str, Json] = field(factory=dict)
    config: Mapping[str, Json] = field(factory=dict)
    model: str = ""
    environment: str = ""
    verifier: str = ""
    tasks: int = 3

    def table(self, kind: str, name: str) -> Mapping[str, Json]:
        """The options of one part, as a run would give them."""
        return {**self.config.get(kind, {}).get(name, {}), **self.options}


@frozen
class Check(Generic[S]):
    """One thing that must hold.

    Attributes:
        sentence: Read after the part's name.
        try_: Raises `Fault` or `NotApplicable`; may return what is worth knowing.
    """

    sentence: str
    try_: Callable[[S], Awaitable[str | None]]


@frozen
class Kind(Generic[S]):
    """All checks of one kind of part.

    Attributes:
        open: Makes the part called so, and what its checks need around it.
    """

    checks: Sequence[Check[S]]
    open: Callable[[str, Plugins, Settings], AbstractAsyncContextManager[S]]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is checked, in order; known before anything is opened."""
        return (OPENS, *(check.sentence for check in self.checks))


async def run_checks(
    part: str, kind: Kind[Any], name: str, plugins: Plugins, settings: Settings
) -> list[Finding]:
    """Open a part, hold every check against it, and close it; one fault hides no other."""
    findings: list[Finding] = []
    try:
        async with kind.open(name, plugins, settings) as subject:
            findings.append(Finding(part=part, sentence=OPENS, status="ok"))
            for check in kind.checks:
                findings.append(await _held(part, check, subject))
    except Exception as error:
        sentence = OPENS if not findings else "it can be closed"
        findings.append(_finding(part, sentence, error))
    reached = {finding.sentence for finding in findings}
    return findings + [
        Finding(part=part, sentence=sentence, status="not applicable", detail=UNREACHED)
        for sentence in kind.sentences
        if sentence not in reached
    ]


async def _held(part: str, check: Check[Any], subject: Any) -> Finding:
    try:
        worth_knowing = await check.try_(subject)
    except Exception as error:  # whatever a part raises is what is looked for
        return _finding(part, check.sentence, error)
    return Finding(part=part, sentence=check.sentence, status="ok", detail=worth_knowing or "")


def _finding(part: str, sentence: str, error: Exception) -> Finding:
    if isinstance(error, NotApplicable):
        return Finding(part=part, sentence=sentence, status="not applicable", detail=str(error))
    if isinstance(error, Fault):
        return Finding(part=part, sentence=sentence, status="failed", detail=error.why, remedy=error.remedy)
    if isinstance(error, WerError):
        return Finding(part=part, sentence=sentence, status="failed", detail=str(error), remedy=_MESSAGE)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Finding(
        part=part,
        sentence=sentence,
        status="failed",
        detail=f"{type(error).__name__}: {error} (line {last.lineno} of {last.filename})",
        remedy="Mend what raised that; the contract says what may be raised, and what is data.",
    )


_MESSAGE = "Do what the message says, then check again."
