"""``wer compare``: skills side by side on the same tasks and seeds, played by a mock server."""

from pathlib import Path

import pytest
from support.mock_bfcl import DRAFT, GOOD, player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.jobs import named_skills
from wer.records import Skill
from wer.reports.results import results
from wer.skills import save_skill
from wer.store import Store


def written(folder: Path, name: str, step: str) -> str:
    skill = Skill(name=name, description="Multi-turn tool use.", body=f"## Workflow\n1. {step}\n")
    return str(save_skill(skill, folder, {}))


@pytest.mark.slow
def test_the_better_of_two_skills_is_told_from_the_other_and_from_noise(tmp_path, capsys):
    environment = plugins.load().environments.make("bfcl", {})
    old, new = written(tmp_path, "old", DRAFT), written(tmp_path, "new", GOOD)
    with serving(MockOpenAI(default=player(environment))) as mock, pytest.raises(SystemExit) as ended:
        words = ["compare", old, new, "--env=bfcl", f"--executor=openai/mock@{mock.url}", "--trials=2"]
        main([*words, "--domains=file_system", "--sandbox=process", f"--runs={tmp_path / 'runs'}"])

    assert not ended.value.code
    (folder,) = (tmp_path / "runs").iterdir()
    found = results(Store(folder / "wer.sqlite"))
    assert found.conditions == ("none", "old", "new", "again", "no-op")
    [better] = [each for each in found.contrasts if (each.better, each.base) == ("new", "old")]
    assert better.difference.low > 0
    assert "A/A control: old, measured again with other seeds, differs by" in capsys.readouterr().out


def test_a_run_without_refined_skills_is_refused(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.toml").touch()
    Store(run / "wer.sqlite", create=True).close()

    with pytest.raises(SystemExit):
        main(["compare", str(run), str(run), "--env=bfcl", "--executor=openai/m"])

    assert "has no refined skills: give a SKILL.md" in " ".join(capsys.readouterr().err.split())


def test_a_skill_that_is_called_as_a_baseline_takes_another_name(tmp_path):
    paths = [
        Path(written(tmp_path / str(place), name, GOOD)) for place, name in enumerate(("none", "a", "a"))
    ]

    assert list(named_skills(paths)) == ["none-1", "a", "a-3"]
