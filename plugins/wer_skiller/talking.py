"""One application's talk with the writer: each reply is kept, and a refused answer is fed back once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from attrs import asdict, define, evolve, field, frozen

from wer.chat import loads
from wer.codec import from_json, to_json
from wer.contracts import Model, OptimizerSetup
from wer.errors import PromptTooLong
from wer.records import Json, Message, Reply, Sampling, Usage, content_hash

T = TypeVar("T")

_CHARACTERS_A_TOKEN = 4
_TRIES = 2


class Refusal(Exception):
    """An answer that can't be used, and why, for its author to read."""


@frozen(kw_only=True)
class Writer:
    """The model behind critic and actor, with the run's memory of what it was paid to write."""

    model: Model
    setup: OptimizerSetup

    async def reply(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask, or find the reply of an interrupted run.

        Raises:
            PromptTooLong: The request would have to be cut.
            ModelError: The model's own failure.
        """
        self._demand_room(messages)
        said = [[message.role, message.content] for message in messages]
        key = f"reply {content_hash([dict(self.model.identity), said, asdict(sampling)])}"
        kept = self.setup.notes.get(key)
        if kept is None:
            reply = await self.model.complete(messages, (), sampling)
            kept = to_json(reply)
            self.setup.notes.put(key, kept)
        return from_json(kept, Reply)

    def _demand_room(self, messages: Sequence[Message]) -> None:
        tokens = sum(len(message.content) for message in messages) // _CHARACTERS_A_TOKEN
        if tokens > self.setup.max_prompt_tokens:
            raise PromptTooLong(
                f"a request of SKILLER has about {tokens} tokens and the limit is {self.setup.max_prompt_tokens}: "
                "WER never truncates evidence. Raise training.max_prompt_tokens if the writer's context allows it."
            )


@define(kw_only=True)
class Talk:
    """What was said for one candidate.

    Attributes:
        texts: Every answer, verbatim, under the name of who gave it.
    """

    writer: Writer
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
            Refusal: Neither could be read.
        """
        refusal = Refusal()
        for attempt in range(_TRIES):
            reply = await self.writer.reply(messages, evolve(sampling, seed=sampling.seed + attempt))
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
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        found = loads(text)
    except ValueError as error:
        raise Refusal(f"the answer is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refusal("the answer is not a JSON object")
    return found
