"""Asking the model of analysts and mergers: every reply is kept, and what was wrong with one is fed back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from attrs import asdict, evolve, frozen

from wer.chat import loads
from wer.codec import from_json, to_json
from wer.contracts import Model, OptimizerSetup
from wer.errors import PromptTooLong
from wer.records import Json, Message, Reply, Sampling, Usage, content_hash

T = TypeVar("T")

_CHARACTERS_A_TOKEN = 4


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
    """The one model of the whole pipeline, with the run's memory of what it was paid to write."""

    model: Model
    setup: OptimizerSetup

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
                reply = await self._reply(messages, evolve(sampling, seed=sampling.seed + turn))
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

    async def _reply(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask, or find the reply of an interrupted run."""
        self._demand_room(messages)
        said = [[message.role, message.content] for message in messages]
        key = f"reply {content_hash([dict(self.model.identity), said, asdict(sampling)])}"
        kept = self.setup.notes.get(key)
        if kept is None:
            kept = to_json(await self.model.complete(messages, (), sampling))
            self.setup.notes.put(key, kept)
        return from_json(kept, Reply)

    def _demand_room(self, messages: Sequence[Message]) -> None:
        tokens = sum(len(message.content) for message in messages) // _CHARACTERS_A_TOKEN
        if tokens > self.setup.max_prompt_tokens:
            raise PromptTooLong(
                f"a request of Trace2Skill has about {tokens} tokens and the limit is "
                f"{self.setup.max_prompt_tokens}: WER never truncates evidence. Raise training.max_prompt_tokens "
                "if the writer's context allows it."
            )


def _fed_back(text: str, refused: Sequence[Refusal]) -> tuple[Message, Message]:
    listed = "\n".join(f"- {why}" for why in refused)
    told = f"That was refused:\n{listed}\nAnswer again, completely, as the same kind of JSON."
    return Message(role="assistant", content=text), Message(role="user", content=told)


def parsed(text: str, *, skill: str) -> dict[str, Json]:
    """Read an answer that is one JSON object about the skill of that name, in a code fence or not.

    Raises:
        Refusal: It is something else, or about another skill.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        found = loads(text)
    except ValueError as error:
        raise Refusal("nonsense", f"the answer is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refusal("nonsense", "the answer is not a JSON object")
    if found.get("skill") != skill:
        raise Refusal("another skill", f"'skill' must be {skill!r}, got {found.get('skill')!r}")
    return found
