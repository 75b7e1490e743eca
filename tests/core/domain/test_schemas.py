from __future__ import annotations

from enum import Enum
from typing import Any, Literal, NotRequired, Optional, TypedDict

import pytest

from wer.domain import State
from wer.domain.schemas import tool_specs
from wer.errors import DomainError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Item(TypedDict):
    sku: str
    quantity: int
    gift: NotRequired[bool]


class Everything(State):
    limit = 3

    def use(
        self,
        text: str,
        count: int,
        price: float,
        tags: list[str],
        sizes: dict[str, int],
        items: list[Item],
        way: Literal["air", "sea"],
        colour: Colour = Colour.RED,
        note: str | None = None,
        older: Optional[int] = None,  # noqa: UP045
        either: str | list[str] = "x",
        anything: Any = None,
        loose: dict = {},  # noqa: B006
        sure: bool = False,
    ) -> str:
        """Use everything at once.

        It takes a while.

        Args:
            text: What to say,
                in one line.
            count (int): How often.

        Returns:
            What was said.

        Raises:
            ValueError: Never mind.
        """

    def export(self):
        return {}

    def _secret(self):
        return 1


def only(cls):
    [spec] = tool_specs(cls)
    return spec


def test_a_method_becomes_a_tool_with_its_docstring_but_for_what_the_agent_need_not_know():
    spec = only(Everything)

    assert spec.name == "use"
    assert spec.description == "Use everything at once.\n\nIt takes a while.\n\nReturns: What was said."


def test_annotations_become_json_schemas_and_the_args_section_their_descriptions():
    found = only(Everything).parameters

    assert found["properties"] == {
        "text": {"type": "string", "description": "What to say, in one line."},
        "count": {"type": "integer", "description": "How often."},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string"},
                    "quantity": {"type": "integer"},
                    "gift": {"type": "boolean"},
                },
                "required": ["sku", "quantity"],
                "additionalProperties": False,
            },
        },
        "way": {"type": "string", "enum": ["air", "sea"]},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "note": {"type": ["string", "null"]},
        "older": {"type": ["integer", "null"]},
        "either": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "default": "x",
        },
        "anything": {},
        "loose": {"type": "object", "default": {}},
        "sure": {"type": "boolean", "default": False},
    }
    assert found["required"] == ["text", "count", "price", "tags", "sizes", "items", "way"]
    assert found["additionalProperties"] is False


def test_tools_come_in_the_order_of_the_class_and_those_of_its_bases_first():
    class Base(State):
        def zebra(self) -> str:
            """Z."""

        def hidden(self) -> str:
            """H."""

    class Child(Base):
        hidden = None

        def aardvark(self) -> str:
            """A."""

    assert [spec.name for spec in tool_specs(Child)] == ["zebra", "aardvark"]


class Undocumented(State):
    def act(self, x: int):
        pass


class Unannotated(State):
    def act(self, x):
        """Act."""


class Odd(State):
    def act(self, x: complex):
        """Act."""


class Starred(State):
    def act(self, *xs: int):
        """Act."""


class Waiting(State):
    async def act(self):
        """Act."""


class Yielding(State):
    async def act(self):
        """Act."""
        yield 1


class Unfinished(State):
    def act(self, x: "int |"):  # noqa: F722
        """Act."""


class Unwritable(State):
    def act(self, x: float = float("inf")):
        """Act."""


class Unknown(State):
    def act(self, x: NoSuchName):  # noqa: F821
        """Act."""


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (
            Undocumented,
            r"Undocumented\.act has no docstring.*Write one; or begin the name with an underscore",
        ),
        (Unannotated, r"Unannotated\.act\(x\) has no annotation.*Give one: str, int"),
        (Odd, r"Odd\.act\(x\) is annotated <class 'complex'>, which is no JSON\. Use str"),
        (Starred, r"Starred\.act\(xs\) is not passed by name"),
        (Waiting, r"Waiting\.act is asynchronous"),
        (Yielding, r"Yielding\.act is asynchronous"),
        (Unfinished, r"annotations of Unfinished\.act can't be read"),
        (Unwritable, r"the default of Unwritable\.act\(x\) is no JSON"),
        (Unknown, r"annotations of Unknown\.act can't be read.*NoSuchName"),
        (State, r"State has no public method"),
    ],
)
def test_a_method_that_can_be_no_tool_is_named_with_the_remedy(cls, message):
    with pytest.raises(DomainError, match=message):
        tool_specs(cls)
