"""The server's side, in process: what a sandbox does with a class, a call and a state."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Literal, TypedDict

import pytest

from wer_sandbox.state import State, World


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Item(TypedDict, total=False):
    sku: str


@dataclasses.dataclass
class Line:
    sku: str


class Hungry(Mapping):
    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        raise MemoryError

    def __len__(self):
        return 1


class Dumb(Exception):
    def __str__(self):
        raise ValueError("no words")


class Desk(State):
    def __init__(self, start: int = 0):
        self.count = start
        self.sizes = {Size.SMALL}
        self.lines = (Line("a"),)
        self.by_number = {1: 0.5}
        self._hidden = object()

    def add(self, n: int, size: Size = Size.SMALL, times: float = 1.0) -> int:
        """Add."""
        assert isinstance(size, Size) and isinstance(n, int)
        self.count += n
        return self.count

    def pick(self, way: Literal["a", 2], items: list[Item] | None = None) -> dict:
        """Pick."""
        return {"way": way, "items": items}

    def fail(self, how: str) -> None:
        """Fail."""
        raise {
            "value": ValueError("no such order"),
            "key": KeyError("k"),
            "exit": SystemExit(3),
            "dumb": Dumb(),
            "base": BaseException("b"),
        }[how]

    def spoil(self) -> None:
        """Put something into the state that is no JSON."""
        self.count = object()

    def grow(self) -> None:
        """Make the state too large."""
        self.count = "x" * 2_000_000

    def sink(self) -> None:
        """Make the state endless."""
        self.count = []
        self.count.append(self.count)

    def exhaust(self) -> None:
        """Make a state that takes more memory than there is."""
        self.count = Hungry()

    def power(self) -> None:
        """Make a number that JSON can't hold."""
        self.count = 10**6000

    def loop(self) -> None:
        """Never end."""
        while True:
            self.count += 1


@pytest.fixture
def desk():
    world = World(Desk)
    assert world.reset({"start": 1}) == {"problem": None}
    return world


def test_a_call_changes_the_state_and_its_result_is_text(desk):
    assert desk.call("add", {"n": 2}) == {"text": "3", "ok": True}
    assert desk.export()["state"]["count"] == 3


def test_public_attributes_are_written_as_json(desk):
    assert desk.export() == {
        "state": {"count": 1, "sizes": ["s"], "lines": [{"sku": "a"}], "by_number": {"1": 0.5}}
    }


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("add", {"n": 2.0, "size": "l"}, "3"),
        ("add", {"n": 2, "times": 3}, "3"),
        ("pick", {"way": 2, "items": [{"sku": "a"}, {}]}, '{"way": 2, "items": [{"sku": "a"}, {}]}'),
        ("pick", {"way": 2, "items": [{"sku": "é"}]}, '{"way": 2, "items": [{"sku": "é"}]}'),
        ("pick", {"way": "a", "items": None}, '{"way": "a", "items": null}'),
    ],
)
def test_arguments_that_fit_are_taken(desk, name, arguments, text):
    assert desk.call(name, arguments) == {"text": text, "ok": True}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        (
            "nope",
            {},
            "there is no tool 'nope' (tools: add, pick, fail, spoil, grow, sink, exhaust, power, loop)",
        ),
        (
            "_hidden",
            {},
            "there is no tool '_hidden' (tools: add, pick, fail, spoil, grow, sink, exhaust, power, loop)",
        ),
        ("add", {}, "the argument 'n' is missing"),
        ("add", {"n": 1, "self": 2}, "no argument 'self' (there are: n, size, times)"),
        ("add", {"n": "1"}, 'n must be an integer, got "1"'),
        ("add", {"n": True}, "n must be an integer, got true"),
        ("add", {"n": 1.5}, "n must be an integer, got 1.5"),
        ("add", {"n": 1, "size": "xl"}, 'size must be one of "s", "l", got "xl"'),
        ("pick", {"way": True}, 'way must be one of "a", 2, got true'),
        ("pick", {"way": "a", "items": [{"sku": 1}]}, "items[0].sku must be a string, got 1"),
        ("pick", {"way": "a", "items": [{"skew": "1"}]}, "items[0] has no key 'skew' (there are: sku)"),
        ("pick", {"way": "a", "items": "all"}, 'items must be a list, got "all"'),
        ("fail", {"how": "value"}, "no such order"),
        ("fail", {"how": "key"}, "KeyError: 'k'"),
        ("fail", {"how": "exit"}, "3"),
        ("fail", {"how": "dumb"}, "Dumb"),
        ("fail", {"how": "base"}, "b"),
        pytest.param("loop", {}, "the call took more than 2 seconds", marks=pytest.mark.slow),
    ],
)
def test_whatever_goes_wrong_in_a_call_is_an_observation(desk, name, arguments, text):
    assert desk.call(name, arguments) == {"text": f"Error: {text}", "ok": False}


def test_a_state_that_is_no_json_is_told_with_its_place(desk):
    desk.call("spoil", {})

    assert desk.export() == {"problem": "TypeError: state.count is of type object, which is no JSON"}


@pytest.mark.parametrize("tool", ["grow", "sink", "exhaust"])
def test_a_state_that_an_agent_made_too_large_equals_no_other(desk, tool):
    desk.call(tool, {})

    assert list(desk.export()["state"]) == ["$too_large"]


def test_a_number_that_no_json_can_hold_equals_no_other(desk):
    desk.call("power", {})

    assert desk.export()["state"]["count"] == {"$int": "19932 bits"}


def test_a_class_that_leaves_the_program_when_it_is_made_is_told():
    class Leaving(State):
        def __init__(self):
            raise SystemExit(2)

    assert World(Leaving).reset({})["problem"] == "Leaving(**state) raised SystemExit: 2"


def test_a_class_that_cannot_be_made_of_the_state_is_told():
    assert World(Desk).reset({"begin": 1})["problem"].startswith("Desk(**state) raised TypeError: ")


def test_a_class_may_export_what_it_likes_and_needs_no_init():
    class Short(State):
        def look(self) -> int:
            """Look."""
            return self.n

        def export(self):
            return [self.n]

    world = World(Short)
    world.reset({"n": 4})

    assert world.call("look", {}) == {"text": "4", "ok": True}
    assert world.export() == {"state": [4]}
