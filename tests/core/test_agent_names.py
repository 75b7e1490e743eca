"""How ``--executor`` tells agents of the user's own from models, and keeps their names valid in any folder."""

from __future__ import annotations

import shlex

import pytest

from wer.agents import called, kind_of, located, target


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai/gpt-4o-mini", None),
        ("openai/m@http://127.0.0.1:8000/v1", None),
        ("litellm/bedrock/anthropic.claude:0", None),
        ("local/qwen2.5-coder-0.5b", None),
        ("agent.py:answer", "function"),
        ("/home/ada/my agents/agent.py:Team.answer", "function"),
        ("agent.py", "function"),
        ("package.module:answer", "function"),
        ("command: python agent.py", "command"),
        ("command:./agent", "command"),
        ("http://127.0.0.1:8000/", "http"),
        ("https://host/act", "http"),
    ],
)
def test_an_executor_is_told_by_how_it_is_named(name, kind):
    assert kind_of(name) == kind


def test_files_of_a_command_are_found_from_any_folder(tmp_path):
    (tmp_path / "my agent.py").touch()
    (tmp_path / "data").mkdir()

    name = located("command: python3 'my agent.py' ./data data {task} --as json", tmp_path)

    words = shlex.split(target(name))
    assert words == [
        "python3",
        str(tmp_path / "my agent.py"),
        str(tmp_path / "data"),
        "data",
        "{task}",
        "--as",
        "json",
    ]
    assert located(name, tmp_path / "data") == name


def test_a_command_without_files_stays_as_it_is_written(tmp_path):
    for name in ("command: echo  {task}", "command: echo 'half"):
        assert located(name, tmp_path) == name


def test_reports_leave_the_folders_of_a_command_out():
    assert called("command: /usr/bin/python3 /home/ada/agent.py {task}") == "command: python3 agent.py {task}"
