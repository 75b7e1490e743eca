"""Which arguments can be sent into a sandbox at all; an environment answers the others with an observation."""

from __future__ import annotations

import json

from wer.records import Json, ToolCall

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 64


def objection(call: ToolCall) -> str | None:
    """Say why a call can't be carried as JSON; None when it can.

    A model may write NaN, a million brackets, or an integer that Python won't print.
    """
    if _deeper_than(call.arguments, MAX_DEPTH):
        return f"the arguments are nested deeper than {MAX_DEPTH} levels"
    try:
        text = json.dumps([call.name, call.arguments], allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"the arguments are not JSON: {error}"
    if len(text) > MAX_CHARACTERS:
        return f"the arguments have more than {MAX_CHARACTERS} characters"
    return None


def _deeper_than(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        nested = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in nested for child in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return False
    return True
