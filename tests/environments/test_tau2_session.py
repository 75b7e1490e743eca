import pytest
from support.scripted_user import STOP, ScriptedUser

from wer.errors import ModelUnavailable, PromptTooLong
from wer.records import End, Reply, ToolCall, ToolSpec, Turn
from wer_tau2.hops import Hops
from wer_tau2.session import Tau2Session
from wer_tau2.user import TRIES, SimulatedUser

STOPS = {"stop": STOP, "transfer": "###TRANSFER###", "out_of_scope": "###OUT-OF-SCOPE###"}
LOOK = ToolCall(name="look", arguments={"x": 1}, id="c1")
WRONG = ToolCall(name="wrong", arguments={})
TOOLS = (ToolSpec(name="look", description="Look.", parameters={"type": "object"}),)
MALFORMED = Reply(text="", malformed=('{"x": ',))


class Recorder:
    """An episode that answers every call, refuses ``wrong``, and remembers what it was asked."""

    def __init__(self):
        self.requests = []
        self.closed = 0

    async def request(self, method, params, *, timeout_s=None):
        self.requests.append((method, params))
        if method == "call":
            failed = params["name"] == "wrong"
            return {"text": "Error: no" if failed else f"seen by {params['requestor']}", "ok": not failed}
        return {"db": "d", "user_db": None, "assertions": []} if method == "export" else None

    async def close(self):
        self.closed += 1


@pytest.fixture
def episode():
    return Recorder()


@pytest.fixture
def sessions(episode):
    def make(*script, max_steps=200, max_errors=10, seed=0):
        model = ScriptedUser(*script)
        user = SimulatedUser(
            model=model, prompt="Be Emma.", tools=TOOLS, seed=seed, temperature=0.0, max_tokens=64
        )
        session = Tau2Session(
            episode=episode,
            user=user,
            hops=Hops(max_steps=max_steps, max_errors=max_errors),
            reset={"domain": "airline", "initial_state": None},
            assertions=["a"],
            greeting="Hi!",
            stops=STOPS,
        )
        return session, model

    return make


async def test_the_world_is_in_place_before_the_user_is_asked(sessions, episode):
    session, user = sessions("I want a refund.")

    turn = await session.begin()

    assert turn == Turn(message="I want a refund.", index=0)
    assert episode.requests == [("reset", {"domain": "airline", "initial_state": None})]
    assert [(each.role, each.content) for each in user.asked[0][0]] == [
        ("system", "Be Emma."),
        ("user", "Hi!"),
    ]


async def test_to_the_users_model_the_agent_is_the_user(sessions):
    session, user = sessions("Hello.", "Yes.", STOP)
    await session.begin()
    await session.say("Are you Emma?")

    await session.say("Done.")

    heard = [(each.role, each.content) for each in user.asked[-1][0][1:]]
    assert heard == [
        ("user", "Hi!"),
        ("assistant", "Hello."),
        ("user", "Are you Emma?"),
        ("assistant", "Yes."),
        ("user", "Done."),
    ]


async def test_every_question_to_the_user_has_a_seed_of_its_own_made_from_the_rollouts(sessions):
    seeds = []
    for seed in (1, 1, 2):
        session, user = sessions("Hello.", STOP, seed=seed)
        await session.begin()
        await session.say("Done.")
        seeds.append([sampling.seed for _, _, sampling in user.asked])

    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 4


async def test_the_users_tools_act_in_the_same_world_and_the_agent_learns_what_it_is_told(sessions, episode):
    session, user = sessions([LOOK], "It is off.", STOP)

    turn = await session.begin()
    await session.say("Done.")
    evidence = await session.evidence()

    assert turn.message == "It is off."
    assert episode.requests[1] == ("call", {"name": "look", "arguments": {"x": 1}, "requestor": "user"})
    assert [(each.role, each.content, each.call_id) for each in user.asked[1][0][-2:]] == [
        ("assistant", "", ""),
        ("tool", "seen by user", "c1"),
    ]
    assert [(step.turn, step.calls, step.text) for step in evidence.user] == [(0, (LOOK,), ""), (1, (), STOP)]


@pytest.mark.parametrize(("word", "why"), [(word, why) for why, word in STOPS.items()])
async def test_a_stop_word_anywhere_ends_the_episode(sessions, word, why):
    session, _ = sessions("Hello.", f"Thanks. {word} Bye.")
    await session.begin()

    end = await session.say("Done.")

    assert end == End(by="user", why=why)
    assert (await session.evidence()).end == end


async def test_a_stop_word_beside_calls_ends_nothing(sessions):
    session, _ = sessions(Reply(text=STOP, calls=(LOOK,)), "Hello.")

    assert isinstance(await session.begin(), Turn)


async def test_a_user_that_stops_before_the_agent_could_act_stopped_too_early(sessions):
    session, _ = sessions(STOP)

    assert await session.begin() == End(by="user", why="premature_stop")


async def test_an_empty_message_of_the_user_is_asked_for_again(sessions):
    session, user = sessions("", "  ", "Hello.")

    turn = await session.begin()

    assert turn.message == "Hello."
    assert len({sampling.seed for _, _, sampling in user.asked}) == 3


@pytest.mark.parametrize(
    ("said", "why", "asked"),
    [
        ("", "empty_message", TRIES),
        (MALFORMED, "malformed_call", TRIES),
        (PromptTooLong("too long"), "out_of_context", 1),
    ],
)
async def test_a_user_that_fails_for_good_has_ended_the_episode(sessions, said, why, asked):
    session, user = sessions("Hello.", said)
    await session.begin()

    end = await session.say("Are you there?")

    assert end == End(by="user", why=why)
    assert len(user.asked) == 1 + asked


async def test_a_users_model_that_is_down_is_no_end_of_the_episode(sessions):
    session, _ = sessions(ModelUnavailable("503"))

    with pytest.raises(ModelUnavailable):
        await session.begin()


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_message_of_the_agent_ends_the_episode_by_its_fault(sessions, text):
    session, user = sessions("Hello.")
    await session.begin()

    end = await session.say(text)

    assert end == End(by="agent", why="empty_message")
    assert len(user.asked) == 1


async def test_a_user_that_never_stops_ends_at_the_limit_of_steps(sessions):
    session, user = sessions(*(f"And {i}?" for i in range(300)), max_steps=20)
    at = await session.begin()
    count = 0

    while isinstance(at, Turn):
        count += 1
        at = await session.say(f"Answer {count}.")

    assert at == End(by="environment", why="step_limit")
    assert count == 10
    assert len(user.asked) == 10


async def test_a_user_that_repeats_itself_to_the_limit_has_ended_the_episode(sessions):
    session, _ = sessions("What?", max_steps=20)
    at = await session.begin()
    count = 0

    while isinstance(at, Turn):
        count += 1
        at = await session.say(f"Answer {count}.")

    assert at == End(by="user", why="loop")


async def test_an_agent_that_only_repeats_itself_to_the_limit_has_ended_the_episode(sessions):
    session, _ = sessions(*(f"And {i}?" for i in range(300)), max_steps=20)
    at = await session.begin()

    while isinstance(at, Turn):
        at = await session.say("I can't help you.")

    assert at == End(by="agent", why="loop")


async def test_a_user_that_only_calls_tools_ends_at_the_limit_too(sessions):
    session, user = sessions([LOOK], max_steps=20)

    end = await session.begin()

    assert end == End(by="environment", why="step_limit")
    assert len(user.asked) == 10


async def test_a_stop_at_the_limit_of_steps_comes_too_late(sessions):
    session, _ = sessions("Hello.", STOP, max_steps=3)
    await session.begin()

    end = await session.say("Done.")

    assert end == End(by="environment", why="step_limit")


async def test_errors_of_agent_and_user_count_together(sessions):
    session, _ = sessions([WRONG], "Hello.", max_errors=3)
    await session.begin()

    first = await session.call([WRONG, LOOK])
    second = await session.call([WRONG, WRONG])

    assert first.end is None
    assert [seen.ok for seen in second.observations] == [False, False]
    assert second.end == End(by="environment", why="error_limit")


async def test_an_agent_that_leaves_has_ended_the_episode_and_its_state_is_exported(sessions, episode):
    session, _ = sessions("Hello.")
    await session.begin()
    await session.call([LOOK])

    evidence = await session.evidence()

    assert evidence.end == End(by="agent", why="stopped")
    assert evidence.turns[-1].state == {"db": "d", "user_db": None, "assertions": []}
    assert evidence.turns[-1].results == ("seen by assistant",)
    assert episode.requests[-1] == ("export", {"assertions": ["a"]})


async def test_only_the_last_turn_has_a_state_and_every_turn_what_was_said(sessions):
    session, _ = sessions("Hello.", "Go on.", STOP)
    await session.begin()
    await session.say("First.")
    await session.say("Second.")

    evidence = await session.evidence()

    assert [(turn.said, turn.state is None) for turn in evidence.turns] == [
        ("First.", True),
        ("Second.", False),
    ]


async def test_arguments_of_a_megabyte_are_an_observation_and_an_error(sessions, episode):
    session, _ = sessions("Hello.", max_errors=1)
    await session.begin()

    answer = await session.call([ToolCall(name="look", arguments={"x": "y" * 1_000_001})])

    assert "more than 1000000 characters" in answer.observations[0].text
    assert answer.end == End(by="environment", why="error_limit")
    assert [method for method, _ in episode.requests] == ["reset"]


async def test_nothing_can_be_done_after_the_end(sessions):
    session, _ = sessions("Hello.", STOP)
    await session.begin()
    await session.say("Done.")

    with pytest.raises(ValueError, match="it is over"):
        await session.call([LOOK])
