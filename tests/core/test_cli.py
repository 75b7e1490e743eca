"""Bad input on the command line: what was wrong, what was expected, what to do; and no traceback."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import pytest
from attrs import evolve
from support import counting
from support.perform import configured, perform

from wer import folders, plugins
from wer.cli import main
from wer.configuration import resolve, to_toml
from wer.store import Store

SKILL = "---\nname: files\ndescription: Work with files.\n---\n## Workflow\n1. Look first.\n"
RUN = ["run", "--env", "bfcl", "--executor", "openai/m@http://127.0.0.1:9/v1", "--sandbox", "process"]

TAU2 = ["run", "--env", "tau2", "--executor", "openai/m@http://127.0.0.1:9/v1", "--sandbox", "process"]


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
        (
            ["run", "--env", "bfvl", "--executor", "local/x"],
            "no environment named 'bfvl' (installed: bfcl, mcp, tau2)",
        ),
        ([*RUN, "--backend", "grop"], "no optimizer named 'grop'"),
        ([*RUN, "--max-rollouts", "1.5"], "--max-rollouts: '1.5' is no whole number"),
        (["bench", *RUN[1:], "--search-rollouts", "1.5"], "'1.5' is no whole number"),
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
        ([*RUN, "--domains", ","], "--domains ',' names something empty"),
        ([*RUN, "--domains", "file_system,,trading_bot"], "names something empty"),
        ([*RUN, "--set", "domains=['']"], "expected a list without empty strings"),
        ([*RUN, "--set", 'seed_skill="a\\u0000b"'], "expected a string without NUL characters"),
        ([*RUN, "--backend", "grpo", "--writer", "runs/x/merged", "--dry-run"], "no folder 'runs/x/merged'"),
        ([*RUN, "--backend", "grpo", "--writer", "runs/x/merged"], "no folder 'runs/x/merged'"),
        ([*RUN, "--backend", "grpo", "--writer", "torch//x/merged"], "no folder '/x/merged'"),
        ([*RUN, "--backend", "grpo", "--writer", "x.gguf", "--dry-run"], "no file 'x.gguf'"),
        ([*RUN, "--backend", "grpo", "--writer", ".", "--dry-run"], "holds no config.json"),
        (TAU2, "environment 'tau2' needs a model that plays the user. Give it with --user-model"),
        ([*TAU2, "--dry-run"], "environment 'tau2' needs a model that plays the user"),
        ([*TAU2, "--user-model", "opnai/m"], "no model named 'opnai'"),
        ([*TAU2, "--user-model", "openai/m", "--domains", "airlin"], "did you mean 'airline'"),
        (
            [*TAU2, "--user-model", "openai/m", "--set", "environment.tau2.split=base"],
            "environment.tau2.split",
        ),
        (
            [*TAU2, "--user-model", "openai/m", "--set", "environment.tau2.max_step=9"],
            "did you mean 'max_steps'",
        ),
        ([*TAU2, "--user-model", "openai/m@http://127.0.0.1:9/v1", "--max-cost", "5"], "is unknown"),
        (["eval", "absent.md", "--env", "bfcl"], "cannot read 'absent.md'"),
        (["bench", "--resume", "x", "--methods", "wer"], "can't be changed in a comparison that goes on"),
        (["bench", *RUN[1:], "--methods", "wer", "--train-seeds", "0,x"], "are not different whole numbers"),
        (["bench", *RUN[1:], "--methods", "wer", "--train-seeds", "1,01"], "are not different whole numbers"),
        (["show", "nothing"], "no run named 'nothing'"),
        (["run", "--resume", "nothing"], "no run named 'nothing'"),
        (["models", "pull", "qwen2.5-code-0.5b"], "Did you mean 'qwen2.5-coder-0.5b'?"),
        (["merge", "one.md", "--writer", "local/x", "--out", "x"], "merging needs at least two"),
        (["merge", "a", "b", "--writer", "local/x", "--out", "."], "must be a new folder"),
        ([*RUN, "--set", "environment.bfc.max_turns=1"], "no environment named 'bfc'"),
        ([*RUN, "--set", "optimizer.promted.x=1"], "no optimizer named 'promted'"),
        ([*RUN, "--max-cost", "5"], "the price of 'openai/m@http://127.0.0.1:9/v1' is unknown"),
        ([*RUN, "--max-cost", "5", "--dry-run"], "the price of 'openai/m@http://127.0.0.1:9/v1' is unknown"),
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
    assert "OPENAI_API_KEY" in printed and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        [*RUN, "--writer=openai/keyless"],
        [*RUN, "--set=seed_writer=openai/keyless"],
        [*RUN, "--set=merge_writer=openai/keyless"],
        [*TAU2, "--user-model=openai/keyless"],
        ["refine", "SKILL.md", *RUN[1:], "--writer=openai/keyless"],
        ["bench", *RUN[1:], "--methods=none,prompted", "--writer=openai/keyless"],
    ],
)
def test_the_key_of_any_role_is_missed_before_there_is_a_run_folder(wer, tmp_path, words):
    (tmp_path / "SKILL.md").write_text(SKILL)

    status, printed = wer(*words)

    assert status == 2
    assert "no API key for openai/keyless. Set OPENAI_API_KEY" in printed
    assert not (tmp_path / "runs").exists()


def test_an_evaluation_and_a_forecast_need_no_key_of_a_writer(wer, tmp_path):
    (tmp_path / "SKILL.md").write_text(SKILL)

    keyless = [f"--set={role}=openai/keyless" for role in ("writer", "seed_writer", "merge_writer")]
    evaluated, _ = wer("eval", "SKILL.md", *RUN[1:], *keyless, "--set=limits.retries=0")
    status, _ = wer(*RUN, "--writer=openai/keyless", "--dry-run")

    assert status == 0
    assert evaluated == 2 and (tmp_path / "runs").exists()  # nobody listens on that port


def made(folder, command):
    config = resolve(None, None, (), {"env": ["bfcl"], "executor": "openai/m@http://127.0.0.1:9/v1"})
    return folders.create(folder, config, command=command, now=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_run_that_goes_on_refuses_options_that_would_make_it_another(wer, tmp_path):
    folder = made(tmp_path, "run")

    status, printed = wer("run", "--resume", str(folder), "--backend", "grpo", "--set", "training.k=8")

    assert status == 2
    assert "--backend, --set training.k=8 can't be changed" in printed


def test_a_dry_run_of_a_comparison_that_goes_on_performs_nothing(wer, tmp_path):
    config = resolve(None, None, (), {"env": ["bfcl"], "executor": "openai/m@http://127.0.0.1:9/v1"})
    methods = {"mine": {"backend": "prompted", "training": {"phases": 0}}}
    folder = folders.create(
        tmp_path / "runs", evolve(config, methods=methods), command="bench", now=datetime.now(UTC)
    )
    Store(folder / "wer.sqlite", create=True).close()

    status, printed = wer("bench", "--resume", str(folder), "--dry-run", "--search-rollouts", "7")

    assert status == 0
    assert "rollouts in all" in printed
    assert sorted(path.name for path in folder.iterdir()) == ["about.toml", "run.toml", "wer.sqlite"]


def test_a_merge_of_a_skill_with_itself_is_refused(wer, tmp_path):
    (tmp_path / "SKILL.md").write_text(SKILL)

    status, printed = wer("merge", "SKILL.md", "SKILL.md", "--writer", "local/x", "--out", "merged")

    assert status == 2
    assert "named twice" in printed


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


def test_a_merge_asks_a_busy_writer_again_and_says_what_it_cost(wer, tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "load", partial(plugins.load, extra=(counting,)))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(f"{SKILL}2. Then {name}.\n")

    status, printed = wer("merge", "one", "two", "--writer", "scribe/a:2", "--out", "both")

    assert status == 0
    assert "trying again (2 of 3): 429: busy" in printed
    assert "1 calls, 100 prompt and 20 completion tokens, 0.0000 USD" in printed
    assert "name: both" in (tmp_path / "both" / "SKILL.md").read_text()


@pytest.mark.parametrize("words", [["show"], ["verify"], ["export", "--out", "x"], ["run", "--resume"]])
def test_a_folder_that_is_no_run_is_told_as_such(wer, tmp_path, words):
    status, printed = wer(words[0], *words[1:], str(tmp_path))

    assert status == 2
    assert "is a folder, but not a run's: it has no run.toml" in printed


def test_a_run_can_not_be_measured_as_a_skill(wer, tmp_path):
    status, printed = wer("eval", str(made(tmp_path, "run")), "--env", "bfcl", "--executor", "openai/m")

    assert status == 2
    assert "is a run, not a skill" in printed


@pytest.mark.parametrize(
    ("words", "ends"), [(["show"], 0), (["verify"], 0), (["export", "--format", "jsonl", "--out", "x"], 2)]
)
def test_a_run_that_is_still_being_written_is_read_and_told_as_such(wer, tmp_path, words, ends):
    folder = made(tmp_path, "run")
    Store(folder / "wer.sqlite", create=True).close()

    with folders.locked(folder):
        status, printed = wer(words[0], str(folder), *words[1:])

    assert status == ends, "there is nothing to export yet"
    assert f"process {os.getpid()} is still writing {folder.name}" in printed


def test_a_run_that_another_process_holds_is_not_gone_on_with(wer, tmp_path):
    folder = made(tmp_path, "run")

    with folders.locked(folder):
        status, printed = wer("run", "--resume", str(folder))

    assert status == 2
    assert f"is in use by process {os.getpid()}" in printed
    assert "go on with" not in printed


def test_a_wer_toml_that_is_a_folder_is_not_passed_over(wer, tmp_path):
    (tmp_path / "wer.toml").mkdir()

    status, printed = wer(*RUN, "--dry-run")

    assert status == 2
    assert "cannot read 'wer.toml'" in printed


def test_help_of_resume_names_what_may_change(wer):
    _, printed = wer("run", "--help")

    assert "--set of limits, tracking, concurrency or workers" in printed.replace("│ │ ", "")


def test_a_narrow_doctor_shows_its_remedies_whole(wer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")

    _, printed = wer("doctor")

    assert "…" not in printed


@pytest.mark.parametrize("words", [["show"], ["verify"], ["export", "--format", "jsonl", "--out", "x"]])
def test_a_run_of_another_version_is_told_with_its_schema(wer, tmp_path, words):
    folder = made(tmp_path, "run")
    Store(folder / "wer.sqlite", create=True).close()
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        db.execute("update schema set version = 99")

    status, printed = wer(words[0], str(folder), *words[1:])

    assert status == 2
    assert "written with store schema 99" in printed


@pytest.mark.parametrize(
    ("command", "stages", "roles"),
    [
        ("run", ["scan", "training, 3 phases", "refinement", "test split"], ["executor", "writer", "merger"]),
        ("eval", ["test split"], ["executor"]),
        ("refine", ["scan", "refinement"], ["executor", "writer", "merger"]),
    ],
)
def test_a_dry_run_prints_what_the_command_will_do_and_makes_nothing(wer, tmp_path, command, stages, roles):
    (tmp_path / "SKILL.md").write_bytes(b"\xef\xbb\xbf" + SKILL.encode())
    words = RUN[1:] if command == "run" else ["SKILL.md", *RUN[1:]]

    status, printed = wer(command, *words, "--dry-run")

    assert status == 0
    assert [stage in printed for stage in ("scan", "training, 3 phases", "refinement", "test split")] == [
        stage in stages for stage in ("scan", "training, 3 phases", "refinement", "test split")
    ]
    assert all(f"│ {role} " in printed for role in roles)
    assert [path.name for path in tmp_path.iterdir()] == ["SKILL.md"]


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


def test_a_caller_of_main_keeps_his_handlers_and_his_mask():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with pytest.raises(SystemExit):
            main(["plugin", "list"])

        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    finally:
        signal.signal(signal.SIGINT, before)


def test_status_says_where_a_run_is_and_what_it_has_spent(tmp_path, capsys):
    perform(tmp_path / "run", configured(budget__max_rollouts=500)).close()
    (tmp_path / "run" / "run.toml").write_text(to_toml(configured(budget__max_rollouts=500)))

    with pytest.raises(SystemExit):
        main(["status", str(tmp_path / "run")])

    said = capsys.readouterr().out
    assert "ended, with results" in said
    assert "rollouts of at most 500" in said
    assert "  seed writer: 6 calls, 720 tokens" in said
