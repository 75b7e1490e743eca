"""The command line with a domain that only a file knows: eval, run, resume, verify."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.mock_bfcl import GOOD, acting, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.folders import configuration
from wer.reports.results import results
from wer.store import Store

EXAMPLE = Path(__file__).parents[3] / "examples" / "shop"
SKILL = f"---\nname: shop\ndescription: Run a shop.\n---\n## Workflow\n1. {GOOD}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder with her shop and her skill, and she is in it."""
    shutil.copytree(EXAMPLE, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path / "mine")
    Path("SKILL.md").write_text(SKILL)
    return tmp_path / "mine"


def wer(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@contextmanager
def agent(folder: Path):
    """An agent that does what the reference does when its skill is the good one."""
    shop = plugins.load().environments.make(f"{folder / 'shop.py'}:shop", {})
    calls = {
        message: list(turn)
        for domain in shop.domains()
        for split in ("train", "test")
        for task in shop.tasks(domain, split)
        for message, turn in zip(task.turns, shop.reference(task), strict=True)
    }
    with serving(MockOpenAI(default=acting(calls))) as mock:
        yield mock, f"--executor=openai/mock@{mock.url}"


def evaluate(folder: Path) -> Path:
    with agent(folder) as (_, executor):
        words = ["eval", "SKILL.md", "--env", "shop.py:shop", executor, "--sandbox=process", "--trials=1"]
        assert wer(*words) == 0
    (run,) = (folder / "runs").iterdir()
    return run


def test_a_skill_is_measured_on_tasks_and_a_check_that_no_package_has(folder, capfd):
    run = evaluate(folder)

    found = results(Store(run / "wer.sqlite"))
    assert found.cell("skill", "average").mean == 1.0
    assert found.cell("none", "average").mean < 1.0
    assert run.name.endswith("-shop-prompted")
    assert "refunds (n=2)" in capfd.readouterr().out
    assert configuration(run).env == (f"{folder / 'shop.py'}:shop",)


def test_a_stored_run_is_judged_again_from_any_folder_and_a_changed_check_shows(folder, monkeypatch, capfd):
    run = evaluate(folder)
    monkeypatch.chdir("/")

    assert wer("verify", str(run)) == 0
    file = folder / "shop.py"
    file.write_text(file.read_text().replace("return not wrong,", "return bool(wrong),"))
    assert wer("verify", str(run)) == 1
    assert "12 verdicts differ" in " ".join(capfd.readouterr().out.split())


def run_words(executor: str) -> list[str]:
    small = ["training.k=2", "training.phases=1", "evaluation.trials=1", "refinement.rounds=1"]
    return [
        "run",
        "--env",
        "shop.py:shop",
        executor,
        "--sandbox=process",
        *(f"--set={item}" for item in small),
    ]


@pytest.mark.slow
def test_a_run_goes_on_from_another_folder_and_repeats_nothing(folder, monkeypatch):
    with agent(folder) as (mock, executor):
        assert wer(*run_words(executor), "--max-rollouts=10") == 2
        (run,) = (folder / "runs").iterdir()
        monkeypatch.chdir("/")
        assert wer("run", "--resume", str(run), "--max-rollouts=1000") == 0
        asked = len(mock.requests)
        assert wer("run", "--resume", str(run), "--max-rollouts=1000") == 0

        assert len(mock.requests) == asked
    assert results(Store(run / "wer.sqlite")).cell("refined", "average").mean == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "edit", "what"),
    [
        ("shop.py", ("return not wrong,", "return bool(wrong),"), "class and the check"),
        ("tasks.jsonl", ("in full", "at once"), "tasks"),
    ],
)
def test_a_run_whose_tasks_or_check_were_edited_does_not_go_on(folder, capfd, file, edit, what):
    with agent(folder) as (_, executor):
        assert wer(*run_words(executor), "--max-rollouts=4") == 2
        (run,) = (folder / "runs").iterdir()
        (folder / file).write_text((folder / file).read_text().replace(*edit))

        assert wer("run", "--resume", str(run), "--max-rollouts=1000") == 2

    said = " ".join(capfd.readouterr().err.split())
    assert f"the {what} of environment 'shop' changed since this run began" in said


def test_a_faulty_line_of_the_tasks_ends_the_command_before_anything_is_paid(folder, capfd):
    with Path("tasks.jsonl").open("a") as file:
        file.write(json.dumps({"id": "move", "query": "Again."}) + "\n")

    code = wer("eval", "SKILL.md", "--env", "shop.py:shop", "--executor=openai/m@http://127.0.0.1:9/v1")

    assert code == 2
    assert "tasks.jsonl, line 9: the id 'move' is also that of line 6" in " ".join(
        capfd.readouterr().err.split()
    )


def test_a_wer_toml_may_name_a_file_beside_it(folder, monkeypatch, capfd):
    executor = "openai/m@http://127.0.0.1:9/v1"
    Path("wer.toml").write_text(
        f'env = "shop.py:shop"\nexecutor = "{executor}"\n[environment.shop]\nseed = 3\n'
    )
    monkeypatch.chdir("/")

    assert wer("eval", str(folder / "SKILL.md"), "--config", str(folder / "wer.toml"), "--dry-run") == 0
    assert "28 rollouts in all" in " ".join(capfd.readouterr().out.split())
