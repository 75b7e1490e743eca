import math

import pytest

from wer.records import End, Task, ToolCall
from wer_bfcl.session import BfclSession

TASK = Task(id="bfcl/t", env="bfcl", domain="d", split="train", turns=("first", "second"), setup={"a": 1})
CALL = ToolCall(name="look", arguments={})


class Recorder:
    """An episode that answers every call and remembers what it was asked."""

    def __init__(self):
        self.requests = []
        self.closed = 0

    async def request(self, method, params, *, timeout_s=None):
        self.requests.append((method, params))
        return {"text": "seen", "ok": True} if method == "call" else {"calls": len(self.requests)}

    async def close(self):
        self.closed += 1


@pytest.fixture
def episode():
    return Recorder()


@pytest.fixture
def session(episode):
    return BfclSession(TASK, episode)


async def test_the_world_is_in_place_before_the_first_message(session, episode):
    turn = await session.begin()

    assert (turn.message, turn.index) == ("first", 0)
    assert episode.requests == [("reset", {"a": 1})]


async def test_saying_something_ends_the_turn_and_the_last_one_ends_the_episode(session):
    await session.begin()

    second = await session.say("done")
    end = await session.say("")

    assert (second.message, second.index) == ("second", 1)
    assert end == End(by="user", why="done")


async def test_the_state_and_the_results_are_kept_turn_by_turn(session):
    await session.begin()
    await session.call([CALL, CALL])
    await session.say("")
    await session.say("")

    evidence = await session.evidence()

    assert [(turn.calls, turn.results) for turn in evidence.turns] == [(2, ("seen", "seen")), (0, ())]
    assert evidence.turns[0].state != evidence.turns[1].state


async def test_the_twenty_first_step_of_a_turn_is_the_last_of_the_episode(session):
    await session.begin()
    for _ in range(20):
        assert (await session.call([CALL])).end is None

    answer = await session.call([CALL])
    evidence = await session.evidence()

    assert answer.end == End(by="environment", why="step_limit")
    assert evidence.end == answer.end
    assert [turn.calls for turn in evidence.turns] == [21]


async def test_every_turn_has_its_own_step_limit(session):
    await session.begin()
    for _ in range(20):
        await session.call([CALL])
    await session.say("")

    assert (await session.call([CALL])).end is None


async def test_an_agent_that_stops_in_a_turn_is_shown_as_it_stopped(session):
    await session.begin()
    await session.call([CALL])

    evidence = await session.evidence()

    assert [turn.calls for turn in evidence.turns] == [1]
    assert evidence.end == End(by="agent", why="stopped")


async def test_nothing_can_be_done_after_the_end(session):
    await session.begin()
    await session.say("")
    await session.say("")

    with pytest.raises(ValueError, match="it is over"):
        await session.call([CALL])


async def test_closing_twice_is_harmless(session, episode):
    await session.close()
    await session.close()

    assert episode.closed == 2


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "not JSON"),
        (math.inf, "not JSON"),
        (10**5000, "not JSON"),
        ("x" * 1_000_001, "more than 1000000 characters"),
        (nested(65), "nested deeper than 64 levels"),
        (nested(100_000), "nested deeper than 64 levels"),
    ],
    ids=("nan", "infinity", "huge number", "huge text", "nested", "deeply nested"),
)
async def test_arguments_that_json_cannot_carry_are_an_observation(session, episode, value, why):
    await session.begin()

    answer = await session.call([ToolCall(name="look", arguments={"x": value})])

    (observation,) = answer.observations
    assert why in observation.text
    assert not observation.ok
    assert [method for method, _ in episode.requests] == ["reset"]
