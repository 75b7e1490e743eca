"""Tool calls in the text of a reply, as most open chat templates teach models to write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wer.chat import loads
from wer.records import ToolCall

_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


def split_calls(text: str) -> tuple[str, tuple[ToolCall, ...], tuple[str, ...]]:
    """Take ``<tool_call>{"name": .., "arguments": {..}}</tool_call>`` blocks out of a reply.

    Returns:
        The text around the blocks, the decodable calls, and the raw text of the rest.
    """
    calls: list[ToolCall] = []
    malformed: list[str] = []
    for index, block in enumerate(_BLOCK.findall(text)):
        call = _call(block, f"call_{index}")
        if call is None:
            malformed.append(block.strip())
        else:
            calls.append(call)
    return _BLOCK.sub("", text).strip(), tuple(calls), tuple(malformed)


def _call(block: str, id_: str) -> ToolCall | None:
    try:
        value = loads(block)
    except ValueError:
        return None
    name = value.get("name") if isinstance(value, Mapping) else None
    arguments = value.get("arguments", {}) if isinstance(value, Mapping) else None
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return None
    return ToolCall(name=name, arguments=arguments, id=id_)
