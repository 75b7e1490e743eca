"""``wer init``: a folder that works as it is."""

from pathlib import Path

import pytest
from support.mock_bfcl import acting, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.reports.results import results
from wer.store import Store


def wer(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert wer("init") == 0
    return tmp_path


def test_the_start_has_settings_three_tasks_and_a_check(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["check.py", "tasks.jsonl", "wer.toml"]
    assert len((folder / "tasks.jsonl").read_text().splitlines()) == 3


def test_a_file_that_is_there_is_never_overwritten(folder, capsys):
    (folder / "check.py").write_text("mine")

    assert wer("init") == 2

    assert "has check.py, tasks.jsonl, wer.toml already" in " ".join(capsys.readouterr().err.split())
    assert (folder / "check.py").read_text() == "mine"


@pytest.mark.slow
def test_a_run_follows_without_editing_a_file(folder):
    pantry = plugins.load().environments.make("check.py:pantry", {})
    tasks = [
        task
        for split in ("train", "test")
        for domain in pantry.domains()
        for task in pantry.tasks(domain, split)
    ]
    calls = {task.turns[0]: list(pantry.reference(task)[0]) for task in tasks}
    with serving(MockOpenAI(default=acting(calls))) as mock:
        assert wer("run", f"--executor=openai/mock@{mock.url}", "--sandbox=process", "--seed=2") == 0

    (run,) = Path("runs").iterdir()
    refined = results(Store(run / "wer.sqlite")).cell("refined", "pantry")
    assert refined is not None and refined.mean == 1.0
