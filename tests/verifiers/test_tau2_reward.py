import pytest
from attrs import evolve

from wer.errors import VerifierError
from wer.records import End, Evidence, Step, Task, ToolCall, Trajectory, TurnEvidence
from wer_tau2_reward.verifier import Tau2Reward

TASK = Task(id="tau2/airline/0", env="tau2", domain="airline", split="test", turns=())
STOP = End(by="user", why="stop")
STATE = {"db": "gold", "user_db": None, "assertions": []}
EXPECT = {
    "basis": ["DB", "COMMUNICATE"],
    "actions": [],
    "assertions": None,
    "communicate": [],
    "greeting": "Hi!",
    "db": "gold",
    "user_db": None,
}


def judged(expect=None, *, state=None, said=(), steps=(), user=(), end=STOP):
    texts = said or ("Done.",)
    turns = tuple(TurnEvidence(state=None, said=text) for text in texts)
    turns = (*turns[:-1], evolve(turns[-1], state={**STATE, **(state or {})}))
    evidence = Evidence(turns=turns, end=end, user=tuple(user))
    trajectory = Trajectory(messages=("Hello.",), steps=tuple(steps), end=end, seed=0)
    return Tau2Reward().judge(TASK, trajectory, evidence, {**EXPECT, **(expect or {})})


def called(name="book", text="", **arguments):
    return Step(turn=0, text=text, calls=(ToolCall(name=name, arguments=arguments),))


def action(name="book", compare_args=None, **arguments):
    return {"name": name, "arguments": arguments, "compare_args": compare_args}


def test_the_references_databases_pass():
    assert judged().passed


@pytest.mark.parametrize(("state", "whose"), [({"db": "other"}, "agent's"), ({"user_db": "other"}, "user's")])
def test_another_database_fails_and_is_named(state, whose):
    verdict = judged(state=state)

    assert not verdict.passed
    assert verdict.diagnostics == (f"the {whose} database is not the reference's",)


def test_databases_do_not_matter_where_the_reward_is_not_based_on_them():
    assert judged({"basis": ["COMMUNICATE"]}, state={"db": "other"}).passed


def test_without_actions_and_assertions_any_state_will_do():
    assert judged({"actions": None, "assertions": None}, state={"db": "other"}).passed


def test_all_assertions_must_hold():
    expect = {"basis": ["ENV_ASSERTION"], "assertions": [{}, {}]}

    assert judged(expect, state={"assertions": [True, True]}).passed
    assert judged(expect, state={"assertions": [True, False]}).diagnostics == ("assertion 2 does not hold",)


def test_an_action_may_be_the_agents_or_the_users():
    expect = {"basis": ["ACTION"], "actions": [action(x=1)]}

    assert judged(expect, steps=[called(x=1)]).passed
    assert judged(expect, user=[called(x=1)]).passed
    assert judged(expect).diagnostics == ("nobody called book as the reference does",)


@pytest.mark.parametrize(
    ("wanted", "arguments", "passed"),
    [
        (action(x=1, y=2), {"x": 1, "y": 2}, True),
        (action(x=1, y=2), {"x": 1}, True),
        (action(x=1, y=2), {}, True),
        (action(x=1), {"x": 1, "y": 2}, False),
        (action(x=1), {"x": 1.0}, True),
        (action(x=1), {"x": "1"}, False),
        (action(x=1, y=2, compare_args=["x"]), {"x": 1, "y": 3}, True),
        (action(x=1, y=2, compare_args=["x"]), {"y": 2}, False),
        (action(x=1, y=2, compare_args=[]), {"y": 9}, True),
    ],
)
def test_actions_are_compared_as_the_package_compares_them(wanted, arguments, passed):
    assert judged({"basis": ["ACTION"], "actions": [wanted]}, steps=[called(**arguments)]).passed is passed


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        (("It is $1,250.",), True),
        (("It is 1250 USD.", "Bye."), True),
        (("It is 125.",), False),
        (("Hi!",), False),
    ],
)
def test_what_must_be_told_is_looked_for_without_commas_in_all_that_was_said(said, passed):
    assert judged({"communicate": ["1250"]}, said=said).passed is passed


def test_what_is_written_beside_calls_counts_as_told_and_case_does_not_matter():
    verdict = judged({"communicate": ["Gold Member"]}, steps=[called(text="You are a GOLD member.")])

    assert verdict.passed


def test_the_text_of_a_message_that_was_said_counts_as_the_user_heard_it():
    spoken = Step(turn=0, text='{"name": "done", "arguments": {"message": "327"}}')

    assert not judged({"communicate": ["done"]}, said=("327",), steps=[spoken]).passed


@pytest.mark.parametrize("why", ["stop", "transfer", "out_of_scope", "premature_stop"])
def test_an_episode_that_the_user_wished_to_end_is_judged(why):
    assert judged(end=End(by="user", why=why)).passed


def test_an_episode_that_the_agent_left_is_judged():
    assert judged(end=End(by="agent", why="stopped")).passed


@pytest.mark.parametrize(
    "end",
    [
        End(by="environment", why="step_limit"),
        End(by="environment", why="error_limit"),
        End(by="user", why="loop"),
        End(by="user", why="empty_message"),
        End(by="user", why="malformed_call"),
        End(by="user", why="out_of_context"),
        End(by="agent", why="empty_message"),
        End(by="agent", why="loop"),
    ],
)
def test_after_any_other_end_the_reward_is_zero_and_says_who_ended_it(end):
    verdict = judged(end=end)

    assert verdict.score == 0.0
    assert verdict.diagnostics == (f"the episode was ended by the {end.by}: {end.why}",)


def test_expectations_of_another_environment_are_refused():
    with pytest.raises(VerifierError, match="judges tasks of the environment tau2"):
        judged_other({"turns": []})


def test_evidence_of_another_environment_is_refused():
    evidence = Evidence(turns=(TurnEvidence(state={"GorillaFileSystem": {}}),), end=STOP)

    with pytest.raises(VerifierError, match="judges episodes of the environment tau2"):
        Tau2Reward().judge(TASK, Trajectory(messages=(), steps=(), end=STOP, seed=0), evidence, EXPECT)


def test_a_basis_that_needs_a_models_judgement_is_refused():
    with pytest.raises(VerifierError, match="NL_ASSERTION"):
        judged({"basis": ["DB", "NL_ASSERTION"]})


def judged_other(expect):
    evidence = Evidence(turns=(TurnEvidence(state=STATE),), end=STOP)
    return Tau2Reward().judge(TASK, Trajectory(messages=(), steps=(), end=STOP, seed=0), evidence, expect)
