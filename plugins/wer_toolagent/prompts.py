"""What the agent is told before the user speaks, with the skill last.

All that does not change between the tasks of a domain comes first, so that a server's
prompt cache holds it; and a prompt without a skill is a beginning of every prompt with one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wer.chat import dumps
from wer.records import Json, JsonObject, Skill, ToolSpec


def system_prompt(instructions: str, documentation: str, context: str, skill: Skill) -> str:
    """Join the parts that are there; the empty skill leaves no trace."""
    body = "" if skill.empty else f"# Skill\n\n{skill.body}"
    return "\n\n".join(part for part in (instructions, documentation, context, body) if part)


def document(tools: Sequence[ToolSpec]) -> str:
    """Describe the tools in the task's order: a line each, then a line for each argument.

    Nothing that a schema says about an argument is left out: what has no short form
    is given as JSON.
    """
    return "\n".join(["# Tools", *(line for tool in tools for line in _tool(tool))])


def _tool(tool: ToolSpec) -> list[str]:
    properties: Mapping[str, JsonObject] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    lines = [f"## {tool.name}", tool.description.strip()]
    for name, schema in properties.items():
        optional = "" if name in required else ", optional"
        lines.append(
            f"- {name} ({_kind(schema)}{optional}): {str(schema.get('description', '')).strip()}".rstrip()
        )
        rest = {key: value for key, value in schema.items() if key not in {"type", "description", "default"}}
        if "default" in schema:
            lines[-1] += f" Default: {dumps(schema['default'])}."
        if rest:
            lines[-1] += f" Schema: {dumps(rest)}"
    return lines


def _kind(schema: JsonObject) -> str:
    kind: Json = schema.get("type", "any")
    return kind if isinstance(kind, str) else dumps(kind)
