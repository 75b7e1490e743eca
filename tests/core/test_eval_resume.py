"""``wer eval`` that was cut goes on with the same question, and pays for nothing twice."""

from __future__ import annotations

import json
import re

import pytest
from support import counting

from wer import plugins
from wer.cli import main
from wer.records import Skill
from wer.skills import save_skill
from wer.store import Store

WORLD = ["--env=counting", "--executor=scribe/a", "--agent=counter", "--sandbox=memory"]


@pytest.fixture
def wer(tmp_path, monkeypatch, capfd):
    """Call the command with the counting world among its plugins; gives the exit status and what was printed."""
    load = plugins.load
    monkeypatch.setattr(plugins, "load", lambda: load(extra=(counting,)))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), " ".join((out + err).split())

    return call


@pytest.fixture
def skill(tmp_path):
    def write(name: str, step: str) -> str:
        made = Skill(name=name, description="Count.", body=f"## Workflow\n1. {step}\n")
        return str(save_skill(made, tmp_path / "given", {}))

    return write


def go_on(printed: str) -> list[str]:
    """The words of the command that a cut evaluation named."""
    found = re.search(r"go on with: wer (eval --resume \S+)", printed)
    assert found, printed
    return found[1].split()


def rollouts(folder):
    return Store(folder / "wer.sqlite").count_rollouts()


def test_a_cut_evaluation_goes_on_with_the_skill_that_it_began_with(wer, skill, tmp_path):
    file = skill("good", "count up")
    status, printed = wer("eval", file, *WORLD, "--trials=2", "--aa", "--max-rollouts=5")
    words = go_on(printed)
    (folder,) = (tmp_path / "runs").iterdir()
    assert (status, rollouts(folder)) == (2, 5)
    skill("good", "changed since")

    status, _ = wer(*words, "--max-rollouts=1000")

    whole, _ = wer("eval", skill("good", "count up"), *WORLD, "--trials=2", "--aa", "--runs=whole")
    (unbroken,) = (tmp_path / "whole").iterdir()
    assert status == whole == 0
    assert rollouts(folder) == rollouts(unbroken)
    assert sorted(Store(folder / "wer.sqlite").results()) == sorted(Store(unbroken / "wer.sqlite").results())


def test_a_cut_gate_goes_on_and_answers_as_an_unbroken_one(wer, skill, tmp_path):
    asked = ["eval", skill("same", "try"), "--against", skill("other", "try"), "--gate", *WORLD, "--trials=6"]
    _, printed = wer(*asked, "--max-rollouts=40")
    words = go_on(printed)
    assert "look 1 of 3" in printed
    status, _ = wer(*words, "--max-rollouts=1000")
    (folder,) = (tmp_path / "runs").iterdir()
    answer = (folder / "gate.json").read_text()

    again, _ = wer(*words)
    whole, _ = wer(*asked, "--runs=whole")

    (unbroken,) = (tmp_path / "whole").iterdir()
    assert status == again == whole == 2
    assert json.loads(answer)["looks"] == 3
    assert answer == (folder / "gate.json").read_text() == (unbroken / "gate.json").read_text()


def test_every_look_of_a_gate_has_the_trials_of_all_executors(wer, skill, tmp_path):
    several = ("--more-executors=scribe/b", "--trials=3")

    wer("eval", skill("same", "try"), "--against", skill("other", "try"), *WORLD, *several)

    (folder,) = (tmp_path / "runs").iterdir()
    store = Store(folder / "wer.sqlite")
    measured = [len(store.results(executor)) for executor in ("scribe/a", "scribe/b")]
    assert measured == [2 * 8 * 3] * 2, "two skills, eight tasks, three trials with each executor"


@pytest.mark.parametrize(("gate", "status"), [(["--gate"], 1), ([], 0)])
def test_only_a_gate_ends_with_the_answer_as_its_status(wer, skill, gate, status):
    ended, printed = wer(
        *("eval", skill("bad", "sit"), "--against", skill("good", "count up"), *gate, *WORLD)
    )

    assert ended == status
    assert "The new skill is worse" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gate"], "give that with --against"),
        (["--no-regression=5"], "give that with --against"),
        (["--against=given/good", "--aa"], "Leave one of them out"),
        (["--resume=x"], "knows what it was asked"),
    ],
)
def test_options_that_do_not_go_together_are_refused(wer, skill, words, message):
    status, printed = wer("eval", skill("good", "count up"), *words, *WORLD)

    assert status == 2
    assert message in printed


def test_a_run_of_python_that_was_made_for_an_evaluation_says_where_it_goes_on(wer, skill, tmp_path):
    wer("eval", skill("good", "count up"), *WORLD, "--trials=1", "--max-rollouts=1")
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / "asked.json").unlink()

    status, printed = wer("eval", "--resume", str(folder))

    assert status == 2
    assert f"resume='{folder}'" in printed
