"""The package's tool schemas, each made whole: without references into itself.

A reference such as ``#/$defs/Passenger`` counts from the root of the schema, and tools are
put inside larger ones to constrain a reply.
"""

from __future__ import annotations

from collections.abc import Mapping

from wer.records import Json, JsonObject, ToolSpec

_DEFINITIONS = "$defs"


def tool_spec(function: JsonObject) -> ToolSpec:
    """Make a tool of what the package gives to a model's interface."""
    parameters = function["parameters"]
    definitions = parameters.get(_DEFINITIONS, {})
    whole = {key: value for key, value in parameters.items() if key != _DEFINITIONS}
    return ToolSpec(
        name=function["name"], description=function["description"], parameters=_inlined(whole, definitions)
    )


def _inlined(schema: Json, definitions: Mapping[str, Json]) -> Json:
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = definitions[schema["$ref"].removeprefix(f"#/{_DEFINITIONS}/")]
        return _inlined({**target, **rest}, definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}
