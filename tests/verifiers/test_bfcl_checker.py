import pytest

import wer_bfcl_checker
from wer.errors import VerifierError
from wer.records import End, Evidence, Task, Trajectory, TurnEvidence

TASK = Task(id="bfcl/t", env="bfcl", domain="d", split="test", turns=("a", "b"))
TRAJECTORY = Trajectory(messages=("a", "b"), steps=(), end=End(by="user"), seed=0)
OPEN = {"Shop": {"orders": {"$dict": [[1, {"status": "Open", "total": 2.0}]]}, "tags": {"$set": ["a"]}}}
DONE = {"Shop": {"orders": {"$dict": [[1, {"status": "Done", "total": 2.0}]]}, "tags": {"$set": ["a"]}}}
EXPECT = {
    "turns": [
        {"state": OPEN, "results": ["opened", "opened"], "calls": 2},
        {"state": DONE, "results": ["closed"], "calls": 1},
    ]
}


def turn(state, *results):
    return TurnEvidence(state=state, results=results, calls=len(results))


def judge(*turns, name="bfcl_checker", expect=EXPECT, end="done"):
    verifier = wer_bfcl_checker.wer_verifiers()[name]()
    evidence = Evidence(turns=turns, end=End(by="agent", why=end))
    return verifier.judge(TASK, TRAJECTORY, evidence, expect)


def test_the_reference_itself_passes():
    verdict = judge(turn(OPEN, "opened", "opened"), turn(DONE, "closed"))

    assert (verdict.passed, verdict.score, verdict.diagnostics) == (True, 1.0, ())


def test_results_may_come_in_any_order_among_others_and_in_an_earlier_turn():
    verdict = judge(turn(OPEN, "closed", "opened", "looked", "opened"), turn(DONE, "looked"))

    assert verdict.passed


def test_a_result_that_is_needed_twice_must_come_twice():
    verdict = judge(turn(OPEN, "opened"), turn(DONE, "closed"))

    assert verdict.diagnostics == ("turn 1: a result is missing so far: opened",)


def test_a_wrong_state_is_named_by_path_with_both_values():
    verdict = judge(turn(OPEN, "opened", "opened"), turn(OPEN, "closed"))

    assert verdict.score == 0.0
    assert verdict.diagnostics == ('turn 2: Shop.orders[1].status is "Open", expected "Done"',)


def test_the_first_wrong_turn_is_the_only_one_that_is_told():
    verdict = judge(turn(DONE, "opened", "opened"), turn(OPEN, "closed"))

    assert len(verdict.diagnostics) == 1
    assert verdict.diagnostics[0].startswith("turn 1: Shop.orders[1].status")


def test_a_turn_without_a_call_fails_even_when_its_state_is_right():
    verdict = judge(turn(OPEN, "opened", "opened", "closed"), turn(DONE))

    assert verdict.diagnostics == ("turn 2: no tool was called, though the turn needs one",)


def test_a_turn_whose_reference_has_no_call_is_not_checked():
    expect = {"turns": [{"state": OPEN, "results": [], "calls": 0}, EXPECT["turns"][1]]}

    assert judge(turn(DONE), turn(DONE, "closed"), expect=expect).passed


def test_an_episode_that_ended_early_fails_and_says_how():
    verdict = judge(turn(OPEN, "opened", "opened"), end="step_limit")

    assert verdict.diagnostics == ("the episode ended (step_limit) after 1 of 2 turns",)


def test_numbers_compare_as_python_compares_them():
    state = {"Shop": {"orders": {"$dict": [[1.0, {"status": "Open", "total": 2}]]}, "tags": {"$set": ["a"]}}}

    assert judge(turn(state, "opened", "opened"), turn(DONE, "closed")).passed


def test_text_is_not_a_number():
    state = {
        "Shop": {"orders": {"$dict": [[1, {"status": "Open", "total": "2.0"}]]}, "tags": {"$set": ["a"]}}
    }

    assert not judge(turn(state, "opened", "opened"), turn(DONE, "closed")).passed


@pytest.mark.parametrize("wrong", [{}, [], None, "", {"$too_large": "more than 96 levels"}])
def test_an_empty_container_of_another_kind_is_a_difference(wrong):
    expect = {"turns": [{"state": {"Shop": {"orders": {}}}, "results": [], "calls": 1}]}

    verdict = judge(turn({"Shop": {"orders": wrong}}, "x"), expect=expect)

    assert verdict.passed == (wrong == {})


def test_attributes_that_the_reference_lacks_are_ignored():
    state = {"Shop": {**OPEN["Shop"], "extra": 1}, "Other": {}}

    assert judge(turn(state, "opened", "opened"), turn(DONE, "closed")).passed


def test_diagnostics_stay_short_however_much_differs():
    many = {"Shop": {"orders": {str(number): "x" * 1000 for number in range(1000)}, "tags": {}}}

    verdict = judge(turn(many), turn(many, "y\n" * 10_000))

    long = judge(turn(many, "y"), turn(many, "y"))
    assert len(verdict.diagnostics) == 1
    assert len(long.diagnostics) <= 10
    assert all(len(line) < 400 and "\n" not in line for line in long.diagnostics)


def test_the_final_state_is_enough_for_the_verdict_of_that_name():
    verdict = judge(turn(OPEN), turn(DONE), name="bfcl_final_state")

    assert verdict.passed


def test_the_final_state_verdict_says_what_differs_at_the_end():
    verdict = judge(turn(DONE), turn(OPEN), name="bfcl_final_state")

    assert verdict.diagnostics == ('at the end: Shop.orders[1].status is "Open", expected "Done"',)


@pytest.mark.parametrize("name", ["bfcl_checker", "bfcl_final_state"])
@pytest.mark.parametrize("expect", [None, {}, {"turns": []}, {"turns": [{}]}, "x"])
def test_an_expectation_of_another_environment_stops_the_run(name, expect):
    with pytest.raises(VerifierError):
        judge(turn(DONE), name=name, expect=expect)
