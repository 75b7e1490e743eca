"""The gate: what it answers about prepared pairs, with which exit status, and how often it is wrong."""

import json
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.mock_bfcl import DRAFT, GOOD, player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.records import Skill
from wer.reports.gating import Rule, decide
from wer.skills import save_skill


def outcomes(*shares: int, trials: int = 4):
    return {f"t{i}": [True] * share + [False] * (trials - share) for i, share in enumerate(shares)}


def decided(new, old, *, margin=None, look=3):
    return decide(Rule(margin=margin), [new], [old], look=look, of_trials=4)


WIDE = 20


@pytest.mark.parametrize(
    ("new", "old", "answer"),
    [
        ([4] * WIDE, [1] * WIDE, "better"),
        ([1] * WIDE, [4] * WIDE, "worse"),
        ([2] * WIDE, [2] * WIDE, "undecided"),
    ],
)
def test_three_prepared_pairs_are_answered(new, old, answer):
    assert decided(outcomes(*new), outcomes(*old)).answer == answer


def test_equal_skills_are_enough_where_no_regression_is_asked_for():
    assert decided(outcomes(*[2] * 60), outcomes(*[2] * 60), margin=0.05).answer == "not worse"


def test_few_tasks_cannot_show_that_nothing_got_worse():
    assert decided(outcomes(2, 2), outcomes(2, 2), margin=0.05).answer == "undecided"


def test_a_clear_loss_within_the_margin_is_not_worse_at_the_last_look_either():
    new, old = outcomes(*[98] * 60, trials=100), outcomes(*[100] * 60, trials=100)

    assert decided(new, old).answer == "worse"
    assert [decided(new, old, margin=0.05, look=look).answer for look in (1, 3)] == ["not worse"] * 2


def test_a_loss_beyond_the_margin_is_worse_at_the_first_look():
    assert decided(outcomes(*[1] * WIDE), outcomes(*[4] * WIDE), margin=0.05, look=1).answer == "worse"


def test_tasks_that_broke_and_those_mended_are_named_with_both_shares():
    found = decided(outcomes(4, 0, 2), outcomes(0, 4, 2))

    assert (found.broke, found.mended) == ({"t1": (1.0, 0.0)}, {"t0": (0.0, 1.0)})


def test_the_files_say_the_same_in_markdown_junit_and_json(tmp_path):
    found = decided(outcomes(*[1] * WIDE), outcomes(*[4] * WIDE))
    markdown, data, junit = found.write(tmp_path)

    assert "The new skill is worse" in markdown.read_text()
    assert json.loads(data.read_text())["answer"] == "worse"
    suite = ElementTree.parse(junit).getroot()
    assert suite.get("failures") == str(len(suite.findall(".//failure"))) == str(1 + WIDE)


@pytest.mark.slow
@pytest.mark.parametrize("consistency", [0.0, 0.5, 1.0])
def test_equal_skills_are_told_apart_in_at_most_one_of_twenty_gates(consistency):
    dice = random.Random(0)
    rule, wrong, gates = Rule(), 0, 400
    for _ in range(gates):
        rates = [dice.random() if dice.random() < consistency else 0.5 for _ in range(12)]
        new, old = ({f"t{i}": [] for i in range(12)} for _ in range(2))
        for look in (1, 2, 3):
            for trials in (new, old):
                for i, rate in enumerate(rates):
                    trials[f"t{i}"] += [dice.random() < rate for _ in range(2)]
            answer, _ = rule.answer([(new, old)], last=look == 3)
            if answer != "undecided":
                wrong += 1
                break
    assert wrong / gates <= 0.05 + 2 * (0.05 * 0.95 / gates) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "status"), [((GOOD, DRAFT), 0), ((DRAFT, GOOD), 1), ((DRAFT, "Other."), 2)]
)
def test_the_exit_status_says_how_it_came_out(tmp_path, steps, status):
    environment = plugins.load().environments.make("bfcl", {})
    new, old = (
        save_skill(Skill(name=name, description="Tools.", body=f"## Workflow\n1. {step}\n"), tmp_path, {})
        for name, step in zip(("new", "old"), steps, strict=True)
    )
    with serving(MockOpenAI(default=player(environment))) as mock, pytest.raises(SystemExit) as ended:
        main(
            [
                *(
                    "eval",
                    str(new),
                    "--against",
                    str(old),
                    "--gate",
                    "--env=bfcl",
                    f"--executor=openai/mock@{mock.url}",
                ),
                *("--domains=file_system", "--sandbox=process", "--trials=3", f"--runs={tmp_path / 'runs'}"),
                *(("--set=evaluation.test_limit=6",) if status == 2 else ()),
            ]
        )

    assert ended.value.code == status
    (folder,) = Path(tmp_path / "runs").iterdir()
    assert (folder / "gate.xml").is_file()
    changed = json.loads((folder / "gate.json").read_text())
    assert all(task.startswith("bfcl/multi_turn_base_") for task in {**changed["broke"], **changed["mended"]})


@pytest.mark.parametrize(("more", "status"), [((), 2), (("--no-regression", "5"), 0)])
def test_a_skill_is_not_measured_against_itself(tmp_path, monkeypatch, capsys, more, status):
    monkeypatch.chdir(tmp_path)
    save_skill(Skill(name="s", description="S.", body=GOOD), tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(
            [
                "eval",
                "s",
                "--against",
                "s/SKILL.md",
                "--gate",
                "--env",
                "bfcl",
                "--executor",
                "openai/m",
                *more,
            ]
        )

    assert (ended.value.code or 0) == status
    assert "the two skills are the same" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


def test_too_few_tasks_are_named_however_large_the_difference():
    few = decided(outcomes(4, 4, 4, 4), outcomes(0, 0, 0, 0))

    assert few.answer == "undecided"
    assert "With fewer than 7 tasks no difference can be told" in "\n".join(few.lines())


@pytest.mark.parametrize("points", ["nan", "inf", "-5", "500"])
def test_a_regression_that_is_no_share_is_refused_before_anything_is_made(
    tmp_path, monkeypatch, capsys, points
):
    monkeypatch.chdir(tmp_path)
    for name, body in (("new", GOOD), ("old", DRAFT)):
        save_skill(Skill(name=name, description="S.", body=body), tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(
            [
                "eval",
                "new",
                "--against",
                "old",
                f"--no-regression={points}",
                "--env",
                "bfcl",
                "--executor",
                "o/m",
            ]
        )

    assert ended.value.code == 2
    assert "is no rule" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
