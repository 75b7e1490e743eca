"""One application's talk with the writer: each reply is kept, and a refused answer is fed back once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from attrs import define, evolve, field

from wer.errors import PromptTooLong
from wer.records import Json, Message, Sampling, Usage
from wer.replies import Replies, json_object

T = TypeVar("T")

_TRIES = 2


class Refusal(Exception):
    """An answer that can't be used, and why, for its author to read."""


@define(kw_only=True)
class Talk:
    """What was said for one candidate.

    Attributes:
        texts: Every answer, verbatim, under the name of who gave it.
    """

    writer: Replies
    texts: list[str] = field(factory=list)
    usage: Usage = field(factory=Usage)

    async def settle(
        self,
        who: str,
        messages: Sequence[Message],
        sampling: Sampling,
        read: Callable[[str], Awaitable[T]],
    ) -> T:
        """Ask until an answer can be read, twice at most; the second time its author knows what was wrong.

        Raises:
            Refusal: Neither could be read, or the second request would have to be cut.
            PromptTooLong: The first request would have to be cut.
        """
        refusal = Refusal()
        for attempt in range(_TRIES):
            try:
                reply = await self.writer.ask(messages, evolve(sampling, seed=sampling.seed + attempt))
            except PromptTooLong:
                if attempt == 0:
                    raise
                break
            self.texts.append(f"# {who}\n{reply.text}")
            self.usage = self.usage + reply.usage
            try:
                return await read(reply.text)
            except Refusal as why:
                refusal = why
            told = f"That was refused:\n{refusal}\nAnswer again, completely, as the same kind of JSON."
            messages = (
                *messages,
                Message(role="assistant", content=reply.text),
                Message(role="user", content=told),
            )
        raise Refusal(f"{who}: {refusal}")


def parsed(text: str) -> dict[str, Json]:
    """Read an answer that is one JSON object, in a code fence or not.

    Raises:
        Refusal: It is something else.
    """
    try:
        return json_object(text)
    except ValueError as error:
        raise Refusal(str(error)) from None
