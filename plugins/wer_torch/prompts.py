"""Chats become token ids, and text that looks like a control token stays text."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from wer.chat import dumps, tools_to_wire
from wer.errors import ModelError
from wer.records import Json, Message, ToolCall, ToolSpec, content_hash


@frozen(kw_only=True, eq=False)
class Prompts:
    """Applies a tokenizer's chat template.

    A message may hold ``<|im_end|>``, written by a tool or a model. A mark that nobody can
    guess is put inside such words; the rendered chat is cut at the marks and encoded
    piece by piece, so that no piece holds a control token that a message brought.
    """

    tokenizer: Any
    _mark: str = field(init=False, factory=lambda: f"\ue000{secrets.token_hex(8)}\ue001")

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        """Render a chat up to the point where the assistant speaks.

        Raises:
            ModelError: The model's template refuses the chat.
        """
        words = tuple(self.tokenizer.get_added_vocab())
        chat = [self._defused(_for_template(message), words) for message in messages]
        offer = self._defused(tools_to_wire(tools), words) if tools else None
        try:
            text = self.tokenizer.apply_chat_template(
                chat, tools=offer, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # jinja2 and the template's own raise_exception
            raise ModelError(f"the model's chat template refused the chat: {error}") from error
        pieces = text.split(self._mark)
        return [id_ for piece in pieces for id_ in self.tokenizer.encode(piece, add_special_tokens=False)]

    def _defused(self, value: Json, words: Sequence[str]) -> Json:
        if isinstance(value, str):
            for word in words:
                if word in value:
                    value = value.replace(word, f"{word[0]}{self._mark}{word[1:]}")
            return value
        if isinstance(value, Mapping):
            return {self._defused(key, words): self._defused(inner, words) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._defused(inner, words) for inner in value]
        return value


def layout() -> str:
    """Name what happens to a chat before and after the model's own template; it changes when that does."""
    call = ToolCall(name="t", arguments={"a": [1, _Transparent.WORD]}, id="i")
    chat = (
        Message(role="user", content=_Transparent.WORD),
        Message(role="assistant", content="c", calls=(call,)),
        Message(role="tool", content="r", call_id="i"),
    )
    tool = ToolSpec(name="t", description="d", parameters={"properties": {"a": {"type": "array"}}})
    return content_hash(Prompts(tokenizer=_Transparent()).encode(chat, [tool]))


class _Transparent:
    """A tokenizer that shows what it was given."""

    WORD = "<|end|>"

    def get_added_vocab(self) -> Sequence[str]:
        return [self.WORD]

    def apply_chat_template(self, chat: Json, **settings: Json) -> str:
        return dumps([chat, settings])

    def encode(self, text: str, **settings: Json) -> list[Json]:
        return [text, settings]


def _for_template(message: Message) -> dict[str, Json]:
    """Write a message as templates expect it: arguments are objects, not text."""
    chat: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.calls:
        chat["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    if message.call_id:
        chat["tool_call_id"] = message.call_id
    return chat
