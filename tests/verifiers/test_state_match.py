import pytest

import wer_state_match
from wer.errors import VerifierError
from wer.records import End, Evidence, Task, Trajectory, TurnEvidence

TASK = Task(id="shop/1", env="shop", domain="d", split="test", turns=("a",))
TRAJECTORY = Trajectory(messages=("a",), steps=(), end=End(by="user"), seed=0)


def judge(state, expect):
    verifier = wer_state_match.wer_verifiers()["state_match"]()
    evidence = Evidence(turns=(TurnEvidence(state={}), TurnEvidence(state=state)), end=End(by="user"))
    return verifier.judge(TASK, TRAJECTORY, evidence, {"state": expect})


@pytest.mark.parametrize(
    ("state", "expect"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}),
        ({"a": 1}, {"a": 1.0}),
        ([], []),
        ("x", "x"),
        ({"a": None}, {"a": None}),
    ],
)
def test_equal_states_pass(state, expect):
    verdict = judge(state, expect)

    assert (verdict.passed, verdict.score, verdict.diagnostics) == (True, 1.0, ())


@pytest.mark.parametrize(
    ("state", "expect", "finding"),
    [
        ({"a": 1}, {"a": 2}, "state.a is 1, expected 2"),
        ({"a": True}, {"a": 1}, "state.a is true, expected 1"),
        ({"a": "1"}, {"a": 1}, 'state.a is "1", expected 1'),
        ({}, {"a": None}, "state.a is absent, expected null"),
        ({"a": 1}, {}, "state.a is 1, expected absent"),
        ([1, 2], [2, 1], "state[0] is 1, expected 2"),
        ([1], [1, 2], "state[1] is absent, expected 2"),
        ({}, [], "state is {}, expected []"),
        ({"a": {"b": [{"c": "x"}]}}, {"a": {"b": [{"c": "y"}]}}, 'state.a.b[0].c is "x", expected "y"'),
    ],
)
def test_a_difference_is_named_by_its_path(state, expect, finding):
    verdict = judge(state, expect)

    assert (verdict.passed, verdict.score) == (False, 0.0)
    assert verdict.diagnostics[0] == finding


def test_only_the_first_differences_are_listed_and_each_is_short():
    verdict = judge({str(number): "x" * 1000 for number in range(100)}, {})

    assert len(verdict.diagnostics) == 6
    assert all(len(line) < 300 for line in verdict.diagnostics)


def test_an_episode_without_a_turn_fails():
    verifier = wer_state_match.wer_verifiers()["state_match"]()

    verdict = verifier.judge(TASK, TRAJECTORY, Evidence(turns=(), end=End(by="agent")), {"state": 1})

    assert not verdict.passed


@pytest.mark.parametrize("expect", [None, {}, [], "x", {"turns": []}, {"state": 1, "total": 2}])
def test_an_expectation_made_for_another_verifier_stops_the_run_rather_than_fail_it(expect):
    verifier = wer_state_match.wer_verifiers()["state_match"]()
    evidence = Evidence(turns=(TurnEvidence(state=expect),), end=End(by="user"))

    with pytest.raises(VerifierError, match=r"shop/1 has no expected state.*environment 'shop' chooses"):
        verifier.judge(TASK, TRAJECTORY, evidence, expect)
