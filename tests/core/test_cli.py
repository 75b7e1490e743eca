"""Bad input on the command line: what was wrong, what was expected, what to do; and no traceback."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from wer import folders
from wer.cli import main
from wer.configuration import resolve

SKILL = "---\nname: files\ndescription: Work with files.\n---\n## Workflow\n1. Look first.\n"
RUN = ["run", "--env", "bfcl", "--executor", "openai/m@http://127.0.0.1:9/v1", "--sandbox", "process"]


@pytest.fixture
def wer(monkeypatch, capfd, tmp_path):
    """Call the command in an empty folder; gives exit status and everything printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exit_:
            main(words)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return int(exit_.value.code or 0), " ".join((out + err).split())

    return call


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--env", "bfvl", "--executor", "local/x"], "no environment named 'bfvl' (installed: bfcl)"),
        ([*RUN, "--backend", "grop"], "no optimizer named 'grop'"),
        ([*RUN, "--preset", "cup"], "did you mean 'cpu'"),
        ([*RUN, "--set", "trainign.k=4"], "did you mean 'training'"),
        ([*RUN, "--set", "training.k=1"], "k must be"),
        ([*RUN, "--set", "training.n=1"], "n must be at least 2 when phases is 3"),
        ([*RUN, "--set", "executor_options.temperature=0"], "a greedy executor repeats itself"),
        ([*RUN, "--set", "environment.bfcl.max_turn=1"], "did you mean 'max_turns'"),
        ([*RUN, "--domains", "file_sistem"], "did you mean 'file_system'"),
        ([*RUN, "--verifier", "state_mach"], "no verifier named 'state_mach'"),
        ([*RUN, "--config", "absent.toml"], "cannot read 'absent.toml'"),
        (["run", "--env", "bfcl", "--executor", "opnai/x", "--dry-run"], "no model named 'opnai'"),
        (["run", "--executor", "local/x"], "env is empty"),
        (["eval", "absent.md", "--env", "bfcl"], "cannot read 'absent.md'"),
        (["show", "nothing"], "no run named 'nothing'"),
        (["run", "--resume", "nothing"], "no run named 'nothing'"),
        (["models", "pull", "qwen2.5-code-0.5b"], "Did you mean 'qwen2.5-coder-0.5b'?"),
        (["merge", "one.md", "--writer", "local/x", "--out", "x"], "merging needs at least two"),
        (["merge", "a", "b", "--writer", "local/x", "--out", "."], "must be a new folder"),
        ([*RUN, "--set", "environment.bfc.max_turns=1"], "no environment named 'bfc'"),
        ([*RUN, "--set", "optimizer.promted.x=1"], "no optimizer named 'promted'"),
        ([*RUN, "--max-cost", "5"], "the price of 'openai/m@http://127.0.0.1:9/v1' is unknown"),
        (
            ["eval", "/dev/zero", "--env", "bfcl", "--executor", "openai/m@http://127.0.0.1:9/v1"],
            "no ordinary file",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_is_right(wer, words, message):
    status, printed = wer(*words)

    assert status != 0
    assert message in printed


def test_a_malformed_configuration_file_is_named_with_its_line(wer, tmp_path):
    (tmp_path / "wer.toml").write_text('env = ["bfcl"]\nexecutor = oops\n')

    status, printed = wer("run")

    assert status == 2
    assert "wer.toml" in printed and "line 2" in printed


def test_a_malformed_skill_is_named_with_its_line_and_the_remedy(wer, tmp_path):
    (tmp_path / "SKILL.md").write_text("---\nname: Not A Name\ndescription: d\n---\n1. go\n")

    status, printed = wer("eval", "SKILL.md", "--env", "bfcl", "--executor", "openai/m@http://127.0.0.1:9/v1")

    assert status == 2
    assert "SKILL.md" in printed and "Not A Name" in printed


def test_a_missing_key_is_named_before_anything_is_built(wer, tmp_path):
    (tmp_path / "SKILL.md").write_text(SKILL)

    status, printed = wer("eval", "SKILL.md", "--env", "bfcl", "--executor", "openai/gpt-4o-mini")

    assert status == 2
    assert "OPENAI_API_KEY" in printed


def made(folder, command):
    config = resolve(None, None, (), {"env": ["bfcl"], "executor": "openai/m@http://127.0.0.1:9/v1"})
    return folders.create(folder, config, command=command, now=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_run_that_goes_on_refuses_options_that_would_make_it_another(wer, tmp_path):
    folder = made(tmp_path, "run")

    status, printed = wer("run", "--resume", str(folder), "--backend", "grpo", "--set", "training.k=8")

    assert status == 2
    assert "--backend, --set training.k=8 can't be changed" in printed


def test_an_evaluation_can_not_be_gone_on_with_as_a_run(wer, tmp_path):
    folder = made(tmp_path, "eval")

    status, printed = wer("run", "--resume", str(folder))

    assert status == 2
    assert "was made by wer eval" in printed


def test_a_run_that_lost_its_store_does_not_start_over_unasked(wer, tmp_path):
    folder = made(tmp_path, "run")
    (folder / "skills").mkdir()

    status, printed = wer("run", "--resume", str(folder))

    assert status == 2
    assert "no wer.sqlite" in printed


def test_a_damaged_run_folder_is_named(wer, tmp_path):
    folder = made(tmp_path, "run")
    (folder / "run.toml").write_bytes(b"\xff\xfe")

    status, printed = wer("show", str(folder))

    assert status == 2
    assert "damaged" in printed


def test_docker_that_does_not_answer_is_said_with_a_remedy(wer, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    status, printed = wer(*RUN[:-1], "docker")

    assert status == 2
    assert "sandbox 'docker' can't be used here" in printed


@pytest.mark.slow
def test_an_unreachable_server_ends_the_run_with_its_address_and_how_to_go_on(wer, tmp_path):
    status, printed = wer(*RUN, "--set", "limits.retries=0", "--set", "training.train_limit=1")

    assert status == 2
    assert "127.0.0.1:9" in printed
    assert "wer run --resume" in printed


def test_help_of_every_command_opens_with_what_it_is_for():
    listed = subprocess.run(
        [sys.executable, "-m", "wer", "--help"], capture_output=True, text=True, check=True
    )

    for command in (
        "run",
        "eval",
        "refine",
        "merge",
        "show",
        "verify",
        "export",
        "plugin",
        "models",
        "doctor",
    ):
        line = next(line for line in listed.stdout.splitlines() if f"│ {command} " in line)
        assert len(line.split(command, 1)[1].strip(" │")) > 20
