"""Tool schemas as constraints on a reply, in the part of JSON schema that grammars handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wer.records import Json, JsonObject, ToolSpec

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def call_schema(name: str, parameters: JsonObject) -> JsonObject:
    """Constrain one call: ``{"name": NAME, "arguments": {...}}``."""
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": simplified({"type": "object", **parameters})},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def any_of(schemas: Sequence[JsonObject]) -> JsonObject:
    """One of several; a choice of one is that one."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def tool_schemas(tools: Sequence[ToolSpec]) -> list[JsonObject]:
    """Constrain a call of each tool, in the order of the documentation."""
    return [call_schema(tool.name, tool.parameters) for tool in tools]


def simplified(schema: Json) -> JsonObject:
    """Keep the shape (types, properties, items, enums) and drop what grammars cannot express.

    What is dropped (formats, ranges, patterns, unknown types) is still in the tool's
    documentation, and the environment still refuses what it refuses.
    """
    if not isinstance(schema, Mapping):
        return {}
    for key in ("enum", "const"):
        if key in schema:
            return {key: schema[key]}
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return {"anyOf": [simplified(option) for option in schema[key]]}
    kind = schema.get("type")
    if isinstance(kind, list):
        return {"anyOf": [simplified({**schema, "type": one}) for one in kind]}
    if kind not in _TYPES:
        return {}
    shape: dict[str, Json] = {"type": kind}
    if kind == "array" and "items" in schema:
        shape["items"] = simplified(schema["items"])
    properties = schema.get("properties")
    if kind == "object" and properties is not None:
        required = schema.get("required") or ()
        shape["properties"] = {name: simplified(inner) for name, inner in properties.items()}
        shape["required"] = [name for name in properties if name in required]
        shape["additionalProperties"] = False
    return shape
