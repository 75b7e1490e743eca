"""The tools in words, for models that get them in the prompt: complete, compact, cache-friendly.

Benchmarks repeat a paragraph about the whole interface before each tool. It is printed
once, above its tools; and the largest group comes first, so that tasks of one domain,
which share their main interface, share a long beginning of the prompt.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence

from wer.chat import dumps
from wer.records import JsonObject, ToolSpec


def document(tools: Sequence[ToolSpec]) -> str:
    """Describe the tools: a signature and what it does, then a line for each argument.

    Nothing that a schema says about an argument is left out: what has no short form
    is given as JSON.
    """
    groups: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        groups.setdefault(_opening(tool), []).append(tool)
    largest_first = sorted(groups.values(), key=len, reverse=True)
    return "\n".join(["# Tools", *(line for group in largest_first for line in _group(group))])


def _opening(tool: ToolSpec) -> str:
    return re.split(r"(?<=[.:])\s", tool.description, maxsplit=1)[0]


def _group(tools: Sequence[ToolSpec]) -> list[str]:
    """Print what all descriptions begin with once, cut at the end of a sentence."""
    common = os.path.commonprefix([tool.description for tool in tools]) if len(tools) > 1 else ""  # noqa: RUF071
    shared = re.match(r".*[.:]\s", common, re.DOTALL)
    length = shared.end() if shared else 0
    heading = [common[:length].strip()] if length else []
    return heading + [line for tool in tools for line in _tool(tool, tool.description[length:])]


def _tool(tool: ToolSpec, description: str) -> list[str]:
    properties: Mapping[str, JsonObject] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    signature = ", ".join(_parameter(name, schema, name in required) for name, schema in properties.items())
    details = [_detail(name, schema) for name, schema in properties.items()]
    return [f"- {tool.name}({signature}): {description.strip()}", *filter(None, details)]


def _parameter(name: str, schema: JsonObject, is_required: bool) -> str:
    kind = schema.get("type", "any")
    default = dumps(schema["default"]) if "default" in schema else "optional"
    return f"{name}: {kind if isinstance(kind, str) else dumps(kind)}" + (
        f" = {default}" if "default" in schema or not is_required else ""
    )


def _detail(name: str, schema: JsonObject) -> str:
    rest = {key: value for key, value in schema.items() if key not in {"type", "description", "default"}}
    parts = [str(schema.get("description", "")).strip(), dumps(rest) if rest else ""]
    text = " ".join(part for part in parts if part)
    return f"  {name}: {text}" if text else ""
