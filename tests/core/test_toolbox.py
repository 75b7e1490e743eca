"""Tools as callables: what a library reads off them, and what it may pass."""

from __future__ import annotations

import inspect
from typing import Any, Literal, Optional, Union

import pytest

from wer import Tools
from wer.records import Observation, ToolSpec
from wer.toolbox import annotation

PLACE = ToolSpec(
    name="place",
    description="Place an order.",
    parameters={
        "type": "object",
        "properties": {
            "express": {"type": "boolean", "default": False},
            "sku": {"type": "string"},
            "to": {"enum": ["card", "credit"]},
        },
        "required": ["sku"],
    },
)


def box(*specs: ToolSpec):
    made = []

    def call(wanted):
        made.append(wanted)
        return Observation(text="placed")

    return Tools(specs or (PLACE,), call), made


def test_a_signature_has_the_needed_parameters_first():
    tools, _ = box()

    assert str(inspect.signature(tools["place"])) == (
        "(sku: str, express: Optional[bool] = False, to: Optional[Literal['card', 'credit']] = None) -> str"
    )


def test_a_parameter_that_python_has_no_name_for_leaves_the_schema_to_tell():
    odd = ToolSpec(name="odd", description="", parameters={"properties": {"from": {}, "a-b": {}}})
    tools, made = box(odd)

    assert tools["odd"](**{"from": 1}) == "placed"
    assert made[0].arguments == {"from": 1} and tools["odd"].parameters == odd.parameters


def test_a_tool_named_as_an_attribute_says_how_a_tool_is_named():
    tools, _ = box()

    with pytest.raises(AttributeError, match=r"tools\['place'\]\(\.\.\.\)"):
        tools.place(sku="kettle")
    assert not hasattr(tools, "model_dump")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [(None, "placed"), ("", "placed"), (5, "Error: the arguments are no JSON object")],
)
def test_arguments_that_are_none_are_empty_and_others_are_answered(arguments, answer):
    tools, _ = box(ToolSpec(name="place", description="", parameters={}))

    assert tools.call("place", arguments) == answer


def test_a_parameter_that_a_framework_fills_with_none_is_left_out():
    tools, made = box()

    tools["place"]("kettle", express=None, to=None)

    assert made[0].arguments == {"sku": "kettle"}


def test_what_a_model_wrote_is_read_as_json():
    tools, made = box()

    assert tools.call("place", '{"sku": "kettle"}') == tools.call("place", {"sku": "kettle"}) == "placed"
    assert tools.call("place", "[1]") == "Error: the arguments are no JSON object"
    assert [call.arguments for call in made] == [{"sku": "kettle"}] * 2


def test_a_tool_that_is_not_there_is_named_with_the_nearest():
    tools, _ = box()

    assert list(tools) == ["place"] and len(tools) == 1
    with pytest.raises(KeyError, match=r"no tool 'plase'; did you mean 'place'\? There are place"):
        tools["plase"]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "integer"}, int),
        ({"type": ["string", "null"]}, Optional[str]),  # noqa: UP045
        ({"type": ["string", "integer"]}, Union[str, int]),  # noqa: UP007
        ({"type": "array", "items": {"type": "number"}}, list[float]),
        ({"type": "array"}, list[Any]),
        ({"type": "object"}, dict[str, Any]),
        ({"enum": ["a", 1]}, Literal["a", 1]),
        ({}, Any),
        (True, Any),
        ({"type": []}, Any),
        ({"type": "dict"}, Any),
    ],
)
def test_a_type_is_read_off_a_schema(schema, found):
    assert annotation(schema) == found
