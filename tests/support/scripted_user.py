"""Users without a model: a script of messages, and one that follows a task's reference."""

from __future__ import annotations

from collections.abc import Sequence

from wer.contracts import Model
from wer.records import JsonObject, Message, Reply, Sampling, ToolCall, ToolSpec, Usage

STOP = "###STOP###"


class ScriptedUser:
    """Says a list of messages, texts or calls, one a question, and then the last one for ever."""

    def __init__(self, *script: str | Sequence[ToolCall] | Reply | Exception) -> None:
        self._script = list(script)
        self.asked: list[tuple[Sequence[Message], Sequence[ToolSpec], Sampling]] = []

    @property
    def identity(self) -> JsonObject:
        return {"provider": "scripted"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        said = self._script[min(len(self.asked), len(self._script) - 1)]
        self.asked.append((tuple(messages), tools, sampling))
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=1)
        if isinstance(said, str):
            return Reply(text=said, usage=usage)
        return Reply(text="", calls=tuple(said), usage=usage)

    async def close(self) -> None: ...


_: type[Model] = ScriptedUser
