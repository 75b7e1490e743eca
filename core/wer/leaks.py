"""Procedure, not solution: finds the values of one task in a skill that should serve a whole family.

A skill that quotes an argument of the reference passes its own task and helps no other one
(method of the paper, "Skill": no argument values or entity ids of one task instance). What
counts as a value of the task is decided by code, so it errs on the side of words that
anybody might write: those are no leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from wer.chat import dumps
from wer.records import Json, Rollout, Skill, Task, ToolCall

_WORD = re.compile(r"[\w@$#][\w@$#./:+-]*[\w$#]|[\w$#]")
_QUOTED = "\"'`"


@frozen(kw_only=True, order=True)
class Leak:
    """One value of a task that a skill quotes.

    Attributes:
        value: As the task has it.
        source: Where it comes from: ``reference``, ``query`` or ``trajectory``.
    """

    value: str
    source: str


@frozen(kw_only=True)
class Private:
    """What belongs to one task alone.

    Attributes:
        values: Arguments of calls, whatever they look like, and where each comes from.
        words: Identifier-like words of texts, likewise.
        public: Everything that the family's tools and policy say, in lower case.
    """

    values: dict[str, str]
    words: dict[str, str]
    public: str

    def leaks(self, skill: Skill) -> tuple[Leak, ...]:
        """Find the values that the skill quotes, in alphabetical order."""
        text = "\n".join((skill.description, skill.body, *skill.scripts.values()))
        found = {
            Leak(value=value, source=source)
            for value, source in self.values.items()
            if _quoted(value, text, strict=not _identifying(value)) and not self._known(value)
        }
        written = set(_WORD.findall(text))
        found |= {
            Leak(value=word, source=source)
            for word, source in self.words.items()
            if word in written and word not in self.values and not self._known(word)
        }
        return tuple(sorted(found))

    def _known(self, value: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", self.public) is not None


def private(
    task: Task, *, reference: Sequence[Sequence[ToolCall]] | None = None, rollouts: Iterable[Rollout] = ()
) -> Private:
    """Collect what belongs to a task: from its reference, its user's words, and what happened in it."""
    values: dict[str, str] = {}
    words: dict[str, str] = {}

    def take(calls: Iterable[ToolCall], source: str) -> None:
        for call in calls:
            for value in _literals(call.arguments):
                values.setdefault(value, source)

    for turn in reference or ():
        take(turn, "reference")
    for message in task.turns:
        _take_words(words, message, "query")
    for rollout in rollouts:
        for step in rollout.trajectory.steps:
            take(step.calls, "trajectory")
            for seen in step.observations:
                _take_words(words, seen.text, "trajectory")
    public = [
        task.context,
        *(f"{tool.name} {tool.description} {dumps(tool.parameters)}" for tool in task.tools),
    ]
    return Private(values=values, words=words, public="\n".join(public).lower())


def sentence(leaks: Sequence[Leak]) -> str:
    """Say what leaks, for people."""
    shown = ", ".join(f"{leak.value!r} ({leak.source})" for leak in leaks[:5])
    more = f" and {len(leaks) - 5} more" if len(leaks) > 5 else ""
    return f"quotes values of one task: {shown}{more}"


def _literals(value: Json) -> Iterator[str]:
    """Every string and telling number inside a JSON value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _literals(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _literals(inner)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, str):
        if len(value.strip()) > 1:
            yield value.strip()
    elif _identifying(str(value)):
        yield str(value)


def _take_words(words: dict[str, str], text: str, source: str) -> None:
    for word in _WORD.findall(text):
        if _identifying(word):
            words.setdefault(word, source)


def _identifying(value: str) -> bool:
    """Whether a value names one thing: no procedure says it by chance.

    Three digits or more, letters mixed with digits or joined by anything but a hyphen, or
    several words.
    """
    if sum(char.isdigit() for char in value) >= 3:
        return True
    if not any(char.isalpha() for char in value):
        return False
    joined = re.search(r"\w[_./@:$#+]\w", value) is not None and len(value) >= 5
    mixed = any(char.isdigit() for char in value)
    return joined or mixed or value.count(" ") >= 2


def _quoted(value: str, text: str, *, strict: bool) -> bool:
    """Whether a text has a value as a word of its own; a strict one only between quotes."""
    if strict:
        return any(f"{quote}{value}{quote}" in text for quote in _QUOTED)
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None
