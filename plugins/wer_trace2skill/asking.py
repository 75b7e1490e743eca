"""Asking the model of analysts and mergers: every reply is kept, and what was wrong with one is fed back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from attrs import evolve, frozen

from wer.errors import PromptTooLong
from wer.records import Json, Message, Sampling, Usage
from wer.replies import Replies, json_object

T = TypeVar("T")


class Refusal(Exception):
    """Something that can't be used.

    Attributes:
        kind: What is counted: ``nonsense``, ``another skill``, ``unverified cause``, ``bad edit``,
            ``leak``, ``invented`` or ``conflict``.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


@frozen(kw_only=True)
class Reading(Generic[T]):
    """What could be read of an answer.

    Attributes:
        value: None when nothing could.
        refused: What is wrong with the answer, or with parts of it that the value is without.
    """

    value: T | None
    refused: tuple[Refusal, ...] = ()


@frozen(kw_only=True)
class Settled(Generic[T]):
    """How a talk ended.

    Attributes:
        texts: Every answer, verbatim, under the name of who gave it.
    """

    reading: Reading[T]
    texts: tuple[str, ...]
    usage: Usage


@frozen(kw_only=True)
class Writer:
    """The one model of the whole pipeline, asked until its answer can be used."""

    replies: Replies

    async def settle(
        self,
        who: str,
        messages: Sequence[Message],
        sampling: Sampling,
        read: Callable[[str], Reading[T]],
        *,
        turns: int,
    ) -> Settled[T]:
        """Ask until nothing is refused, or the turns are spent: then the last usable reading counts.

        Raises:
            PromptTooLong: The first request would have to be cut.
            ModelError: The model's own failure.
        """
        texts: list[str] = []
        usage = Usage()
        best: Reading[T] = Reading(value=None)
        for turn in range(turns):
            try:
                reply = await self.replies.ask(messages, evolve(sampling, seed=sampling.seed + turn))
            except PromptTooLong:
                if turn == 0:
                    raise
                break
            texts.append(f"# {who}\n{reply.text}")
            usage = usage + reply.usage
            reading = read(reply.text)
            if reading.value is not None or best.value is None:
                best = reading
            if not reading.refused:
                break
            messages = (*messages, *_fed_back(reply.text, reading.refused))
        return Settled(reading=best, texts=tuple(texts), usage=usage)


def _fed_back(text: str, refused: Sequence[Refusal]) -> tuple[Message, Message]:
    listed = "\n".join(f"- {why}" for why in refused)
    told = f"That was refused:\n{listed}\nAnswer again, completely, as the same kind of JSON."
    return Message(role="assistant", content=text), Message(role="user", content=told)


def parsed(text: str, *, skill: str) -> dict[str, Json]:
    """Read an answer that is one JSON object about the skill of that name, in a code fence or not.

    Raises:
        Refusal: It is something else, or about another skill.
    """
    try:
        found = json_object(text)
    except ValueError as error:
        raise Refusal("nonsense", str(error)) from None
    if found.get("skill") != skill:
        raise Refusal("another skill", f"'skill' must be {skill!r}, got {found.get('skill')!r}")
    return found
