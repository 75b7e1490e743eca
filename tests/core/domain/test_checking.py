import math
import signal
import sys
import time
from contextlib import suppress

import numpy
import pytest

from wer.domain import checking
from wer.domain.checking import CheckVerifier
from wer.errors import VerifierError
from wer.records import End, Evidence, Step, Task, ToolCall, Trajectory, TurnEvidence, Verdict

TASK = Task(
    id="shop/a/b", env="shop", domain="d", split="test", turns=("Go.", "On."), setup={"state": {"n": [1]}}
)
CALL = ToolCall(name="go", arguments={"x": 1})
LIVED = Trajectory(
    messages=("Go.", "On."), steps=(Step(turn=0, text="", calls=(CALL,)),), end=End(by="user"), seed=0
)
SEEN = Evidence(
    turns=(TurnEvidence(state=0), TurnEvidence(state={"n": [2]}, said="Done.")), end=End(by="user")
)


def judged(check, evidence=SEEN):
    return CheckVerifier(check).judge(TASK, LIVED, evidence, {"n": [2]})


def test_a_check_sees_the_task_as_it_was_written_and_the_end_of_the_episode():
    seen = []

    judged(lambda task, end: bool(seen.append((task, end)) or True))

    [(task, end)] = seen
    assert (task.id, task.domain, task.query, task.turns) == ("a/b", "d", "Go.", ("Go.", "On."))
    assert (task.state, task.expect) == ({"n": [1]}, {"n": [2]})
    assert (end.state, end.text, end.calls) == ({"n": [2]}, "Done.", (CALL,))


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, Verdict(score=1.0, passed=True)),
        (False, Verdict(score=0.0, passed=False)),
        (1, Verdict(score=1.0, passed=True)),
        (0.5, Verdict(score=0.5, passed=False)),
        (numpy.float64(1.0), Verdict(score=1.0, passed=True)),
        ((0.5, "half\n\nof it"), Verdict(score=0.5, passed=False, diagnostics=("half", "of it"))),
        ((True, ""), Verdict(score=1.0, passed=True)),
        (Verdict(score=0.9, passed=True), Verdict(score=0.9, passed=True)),
    ],
)
def test_what_a_check_answers_becomes_a_verdict(answer, verdict):
    found = judged(lambda task, end: answer)

    assert found == verdict
    assert type(found.passed) is bool


@pytest.mark.parametrize("answer", [None, "yes", math.nan, math.inf, 1.5, -0.1, (0.5, None), (0.5,), 1j, []])
def test_any_other_answer_is_an_error_that_names_the_task(answer):
    with pytest.raises(VerifierError, match=r"on task 'a/b'; expected True or False"):
        judged(lambda task, end: answer)


def test_a_check_that_raises_is_an_error_that_names_the_task():
    with pytest.raises(VerifierError, match=r"raised KeyError on task 'a/b': 'gone'\. Mend it"):
        judged(lambda task, end: end.state["gone"])


def test_a_check_that_changes_what_it_was_shown_changes_nothing_that_is_stored():
    def meddle(task, end):
        task.state["n"].append(9)
        task.expect["n"].append(9)
        end.state["n"].append(9)
        end.calls[0].arguments["x"] = 9
        return True

    judged(meddle)

    assert TASK.setup["state"] == {"n": [1]}
    assert SEEN.turns[-1].state == {"n": [2]}
    assert CALL.arguments == {"x": 1}


def test_an_episode_that_ended_before_its_first_turn_fails_unasked():
    verdict = judged(lambda task, end: True, Evidence(turns=(), end=End(by="agent")))

    assert not verdict.passed


def test_a_check_that_leaves_the_program_is_an_error_that_names_the_task():
    with pytest.raises(VerifierError, match=r"raised SystemExit on task 'a/b': 3"):
        judged(lambda task, end: sys.exit(3))


def test_a_check_that_hangs_is_interrupted_and_an_error_that_names_the_task(monkeypatch):
    monkeypatch.setattr(checking, "PATIENCE_S", 0.05)

    with pytest.raises(VerifierError, match=r"TooSlow on task 'a/b': no answer within 0\.05 s"):
        judged(_hang)


def test_a_check_that_is_still_at_it_at_ctrl_c_is_named():
    def slow(task, end):
        time.sleep(1.05)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(VerifierError, match="TooSlow on task 'a/b': no answer until it was interrupted"):
        judged(slow)


def test_ctrl_c_in_the_midst_of_quick_checks_means_the_run():
    with pytest.raises(KeyboardInterrupt):
        judged(lambda task, end: signal.raise_signal(signal.SIGINT))


def _hang(task, end):
    while True:
        with suppress(Exception):
            time.sleep(3600)
