"""A/A: what a skill compared with itself shows, and how often WER's tests would call that a gain."""

import random

import pytest
from support.mock_bfcl import DRAFT, player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.records import Skill
from wer.reports.results import Contrast
from wer.reports.statistics import equal_weight_difference, holm
from wer.skills import save_skill


@pytest.mark.slow
def test_a_skill_beside_itself_shows_the_noise(tmp_path, capsys):
    environment = plugins.load().environments.make("bfcl", {})
    skill = save_skill(Skill(name="draft", description="Tools.", body=f"1. {DRAFT}\n"), tmp_path, {})
    with serving(MockOpenAI(default=player(environment))) as mock, pytest.raises(SystemExit) as ended:
        words = ["eval", str(skill), "--aa", "--env=bfcl", f"--executor=openai/mock@{mock.url}", "--trials=2"]
        main([*words, "--domains=file_system", "--sandbox=process", f"--runs={tmp_path / 'runs'}"])

    assert not ended.value.code
    said = capsys.readouterr().out
    assert "the same again (A/A) and this skill can't be told apart" in " ".join(said.split())
    assert "A/A control: this skill, measured again with other seeds, differs by" in said


def equal(dice: random.Random, tasks: int, trials: int, times: int = 2):
    """Outcomes of one skill, several times, over tasks of which some always and some never pass."""
    rates = [dice.choice((0.0, 0.3, 0.5, 0.8, 1.0)) for _ in range(tasks)]
    return tuple(
        {f"t{i}": [dice.random() < rate for _ in range(trials)] for i, rate in enumerate(rates)}
        for _ in range(times)
    )


def at_most_one_in_twenty(wrong: int, of: int) -> bool:
    return wrong / of <= 0.05 + 2 * (0.05 * 0.95 / of) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "trials", "domains"), [(38, 1, 1), (12, 3, 1), (10, 2, 4)])
def test_equal_skills_are_called_better_or_worse_in_at_most_one_of_twenty_comparisons(tasks, trials, domains):
    dice, wrong, repeats = random.Random(1), 0, 400
    for _ in range(repeats):
        pairs = [equal(dice, tasks, trials) for _ in range(domains)]
        found = Contrast(better="a", base="b", difference=equal_weight_difference(pairs))
        wrong += "can't be told apart" not in found.sentence()

    assert at_most_one_in_twenty(wrong, repeats)


@pytest.mark.slow
def test_any_of_five_equal_methods_is_called_better_in_at_most_one_of_twenty_benches():
    dice, wrong, repeats = random.Random(2), 0, 200
    for _ in range(repeats):
        base, *methods = equal(dice, 20, 2, times=6)
        wrong += min(holm([equal_weight_difference([(each, base)]).p for each in methods])) < 0.05

    assert at_most_one_in_twenty(wrong, repeats)
