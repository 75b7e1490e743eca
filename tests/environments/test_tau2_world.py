"""The world of an episode over a stand-in for the package: what is data, and what is refused."""

from types import SimpleNamespace

import pytest

from wer_tau2_domain.world import World


class Record(SimpleNamespace):
    """As the package's records: made of a mapping, with what it lacks being None."""

    @classmethod
    def model_validate(cls, fields):
        return cls(**fields)

    def __getattr__(self, name):
        return None


class Shop:
    """An environment with a counter for a database."""

    def __init__(self):
        self.count = 0
        self.synced = 0

    def set_state(self, initialization_data, initialization_actions, message_history):
        self.count = (initialization_data or {}).get("count", 0)

    def get_response(self, call):
        if call.name == "shout":
            return SimpleNamespace(content="x" * 1_000_001, error=False)
        if call.name == "break":
            raise TypeError("no such type")
        if call.name == "hang":
            while True:
                pass
        self.synced += 1
        self.make_tool_call(call.name, call.requestor, **call.arguments)
        return SimpleNamespace(content=str(self.count), error=False)

    def make_tool_call(self, tool_name, requestor, by=1):
        if tool_name != "add":
            raise ValueError(f"Tool '{tool_name}' not found.")
        self.count += by

    def get_db_hash(self):
        if self.count < 0:
            raise TypeError("'<' not supported between instances of 'str' and 'int'")
        return f"count {self.count}"

    def get_user_db_hash(self):
        return None

    def run_env_assertion(self, assertion, raise_assertion_error):
        if assertion.at_least is None:
            raise ValueError("returned a number instead of bool")
        return self.count >= assertion.at_least


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
def world(shop):
    tasks = SimpleNamespace(InitialState=Record, Action=Record, EnvAssertion=Record)
    package = SimpleNamespace(
        environments={"shop": shop}, tasks=tasks, messages=SimpleNamespace(ToolCall=Record)
    )
    made = World(package)
    made.reset("shop", {"initialization_data": {"count": 2}})
    return made


def test_the_tasks_state_is_in_place_after_the_reset(world):
    assert world.export([]) == {"db": "count 2", "user_db": None, "assertions": []}


def test_an_episode_can_not_begin_twice(world):
    with pytest.raises(ValueError, match="begun already"):
        world.reset("shop", None)


def test_a_call_answers_with_text(world):
    assert world.call("add", {"by": 3}, "assistant") == {"text": "5", "ok": True}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("break", {}, "Error: no such type"),
        ("drop", {}, "Error: Tool 'drop' not found."),
        ("shout", {}, "Error: the result has more than 1000000 characters"),
    ],
)
def test_what_goes_wrong_in_a_call_is_its_answer(world, name, arguments, text):
    assert world.call(name, arguments, "assistant") == {"text": text, "ok": False}


def test_a_call_that_hangs_is_stopped_and_is_an_answer(world, monkeypatch):
    monkeypatch.setattr("wer_sandbox.limits.CPU_LIMIT_S", 0.05)

    assert world.call("hang", {}, "user") == {
        "text": "Error: the call took more than 0.05 seconds",
        "ok": False,
    }


def test_the_reference_is_done_without_syncing_and_its_errors_are_passed_over(world, shop):
    actions = [
        {"name": "add", "requestor": "assistant", "arguments": {"by": 2}},
        {"name": "gone", "requestor": "assistant", "arguments": {}},
        {"name": "add", "requestor": "user", "arguments": {}},
    ]

    world.gold(actions)

    assert world.export([])["db"] == "count 5"
    assert shop.synced == 0


def test_assertions_that_fail_or_can_not_be_checked_do_not_hold(world):
    assert world.export([{"at_least": 1}, {"at_least": 3}, {}])["assertions"] == [True, False, False]


def test_a_database_that_can_not_be_hashed_equals_no_other(world):
    world.call("add", {"by": -10}, "assistant")

    assert world.export([])["db"] == "no hash: TypeError"
