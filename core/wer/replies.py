"""A model's replies that a run keeps: what a method was paid to have written is found again after a kill."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import asdict, frozen

from wer.chat import loads
from wer.codec import from_json, to_json
from wer.contracts import Model, OptimizerSetup
from wer.errors import PromptTooLong
from wer.records import Json, Message, Reply, Sampling, content_hash

_CHARACTERS_A_TOKEN = 4


@frozen(kw_only=True)
class Replies:
    """A writer whose replies are kept in the notes of an optimizer, by all that was asked.

    Attributes:
        who: The method, for messages.
    """

    who: str
    model: Model
    setup: OptimizerSetup

    async def ask(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
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
            kept = to_json(await self.model.complete(messages, (), sampling))
            self.setup.notes.put(key, kept)
        return from_json(kept, Reply)

    def _demand_room(self, messages: Sequence[Message]) -> None:
        tokens = sum(len(message.content) for message in messages) // _CHARACTERS_A_TOKEN
        if tokens > self.setup.max_prompt_tokens:
            raise PromptTooLong(
                f"a request of {self.who} has about {tokens} tokens and the limit is {self.setup.max_prompt_tokens}: "
                "WER never truncates evidence. Raise training.max_prompt_tokens if the writer's context allows it."
            )


def json_object(text: str) -> dict[str, Json]:
    """Read an answer that is one JSON object, in a code fence or not.

    Raises:
        ValueError: It is something else.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        found = loads(text)
    except ValueError as error:
        raise ValueError(f"the answer is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("the answer is not a JSON object")
    return found
