"""The benchmark's tool descriptions as JSON schemas, as its own OpenAI handler makes them."""

from __future__ import annotations

from wer.records import JsonObject, ToolSpec

_HINT = " Note that the provided function is in Python 3 syntax."
_FLOAT_HINT = " This is a float type value."
_JSON_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "any": "string"}


def tool_spec(doc: JsonObject) -> ToolSpec:
    """Make the tool that the official runner offers; what a tool returns is not part of it."""
    parameters = doc["parameters"]
    return ToolSpec(
        name=doc["name"],
        description=doc["description"] + _HINT,
        parameters={**parameters, "type": "object", "properties": _properties(parameters["properties"])},
    )


def _properties(properties: JsonObject) -> dict[str, JsonObject]:
    return {name: _schema(schema) for name, schema in properties.items()}


def _schema(schema: JsonObject) -> JsonObject:
    schema = _typed(schema)
    if schema["type"] == "object" and "properties" in schema:
        return {**schema, "properties": _properties(schema["properties"])}
    if schema["type"] == "array" and "items" in schema:
        items = schema["items"]
        return {**schema, "items": {**items, "type": _JSON_TYPES.get(items["type"], items["type"])}}
    return schema


def _typed(schema: JsonObject) -> JsonObject:
    kind = schema["type"]
    if kind == "float":
        hinted = schema["description"] + _FLOAT_HINT
        return {**schema, "type": "number", "format": "float", "description": hinted}
    return {**schema, "type": _JSON_TYPES.get(kind, kind)}
