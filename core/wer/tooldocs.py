"""Tools in words, for prompts: compact, and with a long common beginning within a domain.

Benchmarks repeat a paragraph about the whole interface before each tool. It is printed
once, above its tools; and the largest group comes first, so that tasks of one domain,
which share their main interface, share a long beginning of the prompt.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping, Sequence

from wer.chat import dumps
from wer.records import JsonObject, ToolSpec


def document(tools: Sequence[ToolSpec]) -> str:
    """Describe the tools in full: a signature and what it does, then a line for each argument.

    Nothing that a schema says about an argument is left out: what has no short form
    is given as JSON.
    """
    return "\n".join(["# Tools", *_grouped(tools, _in_full)])


def signatures(tools: Sequence[ToolSpec]) -> str:
    """Describe the tools a line each: arguments with their types and defaults, and the description.

    The descriptions of single arguments are left out.
    """
    return "\n".join(["# Tools", *_grouped(tools, _in_one_line)])


def _grouped(tools: Sequence[ToolSpec], render: Callable[[ToolSpec, str], list[str]]) -> list[str]:
    groups: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        groups.setdefault(_opening(tool), []).append(tool)
    largest_first = sorted(groups.values(), key=len, reverse=True)
    return [line for group in largest_first for line in _group(group, render)]


def _opening(tool: ToolSpec) -> str:
    return re.split(r"(?<=[.:])\s", tool.description, maxsplit=1)[0]


def _group(tools: Sequence[ToolSpec], render: Callable[[ToolSpec, str], list[str]]) -> list[str]:
    """Print what all descriptions begin with, and end with, once, cut between sentences."""
    texts = [tool.description for tool in tools]
    common = os.path.commonprefix(texts) if len(texts) > 1 else ""  # noqa: RUF071
    shared = re.match(r".*[.:]\s", common, re.DOTALL)
    start = shared.end() if shared else 0
    rests = [text[start:] for text in texts]
    ending = os.path.commonprefix([rest[::-1] for rest in rests])[::-1] if len(rests) > 1 else ""  # noqa: RUF071
    stop = re.search(r"(?<=[.:])\s.*", ending, re.DOTALL)
    ending = stop.group() if stop else ""
    heading = " ".join(filter(None, (common[:start].strip(), ending.strip())))
    lines = [heading] if heading else []
    for tool, rest in zip(tools, rests, strict=True):
        lines += render(tool, rest.removesuffix(ending).strip())
    return lines


def _in_full(tool: ToolSpec, description: str) -> list[str]:
    details = [_detail(name, schema) for name, schema, _ in _parameters(tool)]
    return [*_in_one_line(tool, description), *filter(None, details)]


def _in_one_line(tool: ToolSpec, description: str) -> list[str]:
    listed = ", ".join(_parameter(*parameter) for parameter in _parameters(tool))
    return [f"- {tool.name}({listed}): {description}"]


def _parameters(tool: ToolSpec) -> list[tuple[str, JsonObject, bool]]:
    properties: Mapping[str, JsonObject] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    return [(name, schema, name not in required) for name, schema in properties.items()]


def _parameter(name: str, schema: JsonObject, optional: bool) -> str:
    kind = schema.get("type", "any")
    default = dumps(schema["default"]) if "default" in schema else "optional"
    return f"{name}: {kind if isinstance(kind, str) else dumps(kind)}" + (
        f" = {default}" if "default" in schema or optional else ""
    )


def _detail(name: str, schema: JsonObject) -> str:
    rest = {key: value for key, value in schema.items() if key not in {"type", "description", "default"}}
    parts = [str(schema.get("description", "")).strip(), dumps(rest) if rest else ""]
    text = " ".join(part for part in parts if part)
    return f"  {name}: {text}" if text else ""
