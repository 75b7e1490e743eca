import json
import math

import pytest

from wer_bfcl_domain.canonical import Exporter
from wer_bfcl_domain.world import World


class Shelf:
    """A small class in the style of the benchmark's."""

    def __init__(self):
        self._secret = 1

    def _load_scenario(self, scenario, long_context=False):
        self.items = scenario.get("items", {})

    def put(self, name: str, count: int = 1):
        self.items[name] = count
        return {"stored": name}

    def refuse(self):
        return {"error": "no"}

    def nothing(self):
        return None

    def power(self, base, exponent):
        return {"result": base**exponent}

    def loop(self):
        while True:
            try:
                while True:
                    pass
            except Exception:
                return "swallowed"


@pytest.fixture
def world():
    world = World({"Shelf": Shelf})
    world.reset({"Shelf": {"items": {"a": 1}}}, ["Shelf"])
    return world


@pytest.mark.parametrize(
    ("name", "arguments", "text", "ok"),
    [
        ("put", {"name": "b"}, '{"stored": "b"}', True),
        ("nothing", {}, "None", True),
        ("refuse", {}, '{"error": "no"}', False),
    ],
)
def test_a_result_is_said_as_the_official_runner_says_it(world, name, arguments, text, ok):
    assert world.call(name, arguments) == {"text": text, "ok": ok}


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("_load_scenario", {"scenario": {}}, "name '_load_scenario' is not defined"),
        ("os.system", {}, "name 'os.system' is not defined"),
        ("put", {}, "Shelf.put() missing 1 required positional argument: 'name'"),
        ("put", {"name": ["x"]}, "unhashable type: 'list'"),
        ("put", {"self": 1}, "Shelf.put() got multiple values for argument 'self'"),
    ],
)
def test_a_call_that_goes_wrong_is_an_observation(world, name, arguments, why):
    assert world.call(name, arguments) == {"text": f"Error during execution: {why}", "ok": False}


def test_a_call_that_never_ends_is_stopped_and_is_an_observation(world, monkeypatch):
    monkeypatch.setattr("wer_sandbox.limits.CPU_LIMIT_S", 0.05)

    answer = world.call("loop", {})

    assert answer == {"text": "Error during execution: the call took more than 0.05 seconds", "ok": False}


@pytest.mark.parametrize(
    "arguments",
    [
        {"base": 9, "exponent": 10**9},
        {"base": -(10**300), "exponent": 10**300},
        {"base": 2, "exponent": 2, "precision": 10**9},
    ],
)
def test_arithmetic_that_would_hang_is_refused(world, arguments):
    answer = world.call("power", arguments)

    assert answer["ok"] is False
    assert "4300" in answer["text"]


@pytest.mark.parametrize("base", [0, 1, -1])
def test_powers_of_one_and_nought_are_not_refused(world, base):
    assert world.call("power", {"base": base, "exponent": 10**9 + 1})["text"] == f'{{"result": {base}}}'


def test_the_export_has_public_attributes_only(world):
    world.call("put", {"name": "b", "count": 2})

    assert world.export() == {"Shelf": {"items": {"a": 1, "b": 2}}}


def test_a_new_reset_forgets_the_old_world(world):
    world.call("put", {"name": "b"})

    world.reset({}, ["Shelf"])

    assert world.export() == {"Shelf": {"items": {}}}


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.contents = {}
        self._changed = object()


def test_what_json_lacks_is_tagged():
    value = {"s": {3, 1.5, "x"}, "t": (1,), "n": {2: "b", 1: "a"}, "f": math.nan, "o": Node()}

    exported = Exporter().canonical(value)

    assert exported == {
        "s": {"$set": [1.5, 3, "x"]},
        "t": {"$tuple": [1]},
        "n": {"$dict": [[1, "a"], [2, "b"]]},
        "f": {"$float": "nan"},
        "o": {"$object": "Node", "contents": {}},
    }
    assert json.loads(json.dumps(exported, allow_nan=False)) == exported


def test_a_key_that_looks_like_a_tag_is_told_from_one():
    assert Exporter().canonical({"$set": [1]}) == {"$dict": [["$set", [1]]]}


@pytest.mark.parametrize(
    "grow",
    [
        lambda node: node.contents.update(itself=node),
        lambda node: node.contents.update(text="x" * 1_000_001),
        lambda node: node.contents.update(many=[0] * 100_001),
    ],
)
def test_a_state_without_end_is_exported_as_too_large(grow):
    node = Node()
    grow(node)

    assert list(Exporter().canonical(node)) == ["$too_large"]
