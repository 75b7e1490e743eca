"""The help desk as its users have it: built, installed beside WER in a clean environment, checked and run."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from support.clean_venv import ROOT, clean_venv, run, wheel
from support.mock_bfcl import acting, serving
from support.mock_openai import MockOpenAI

from wer.records import ToolCall
from wer.reports.results import results
from wer.store import Store
from wer.wheels import fetch

_EXAMPLE = ROOT / "examples" / "wer-plugin-helpdesk"
_TASKS = [
    json.loads(line) for line in (_EXAMPLE / "wer_helpdesk" / "tasks.jsonl").read_text("utf-8").splitlines()
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stranger")
    for_tests = fetch(("anyascii==0.3.3",)).glob("*.whl")
    return clean_venv(
        folder / "venv", wheel(ROOT, folder), wheel(_EXAMPLE, folder), *for_tests, also=["pytest", "docker"]
    )


@pytest.fixture(scope="module")
def finished(commands, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with serving(MockOpenAI(default=acting(_references()))) as mock:
        run(
            commands / "wer",
            "run",
            "--env=helpdesk",
            "--backend=prompted",
            f"--executor=openai/mock@{mock.url}",
            "--sandbox=process",
            "--set=executor_options.mode='native'",
            "--set=training.train_limit=2",
            "--set=training.k=2",
            "--set=training.phases=1",
            "--set=evaluation.trials=1",
            "--set=refinement.rounds=1",
            f"--runs={folder}",
        )
    (made,) = folder.iterdir()
    return made, mock


def test_the_demo_runs_where_wer_was_installed_alone(commands, tmp_path):
    shown = " ".join(run(commands / "wer", "demo", cwd=tmp_path).split())

    assert "every verdict is the one recorded" in shown


def _references():
    return {
        message: [ToolCall(**call) for call in calls]
        for task in _TASKS
        for message, calls in zip(
            task.get("turns") or [task["query"]], _by_turn(task["reference"]), strict=True
        )
    }


def _by_turn(reference):
    return reference if isinstance(reference[0], list) else [reference]


def test_a_stranger_finds_the_help_desk_and_its_verifier_beside_wers_own(commands):
    python = commands / "python"
    program = "from wer import plugins; found = plugins.load(); print(found.broken, found.verifiers.names())"

    assert run(python, "-c", program).startswith("{} (")
    assert "'helpdesk'" in run(python, "-c", program)


def test_its_references_pass_and_doing_nothing_and_spoilt_references_do_not(commands):
    said = run(commands / "wer", "plugin", "check", "helpdesk", "--sandbox=process", "--tasks=20")
    words = " ".join(re.sub("[│┃]", " ", said).split())

    assert "ok 35 references" in words
    assert "doing nothing passes on 0 of 35" in words
    assert re.search(r"changed references fail ok \d of 1\d\d accepted", words)
    assert "failed" not in words


@pytest.mark.docker
def test_it_passes_the_same_checks_in_containers(commands):
    said = run(commands / "wer", "plugin", "check", "helpdesk", "--sandbox=docker")

    assert "docker (no network" in said and "failed" not in said


def test_its_own_tests_pass_where_it_is_installed(commands, tmp_path):
    shutil.copytree(_EXAMPLE / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_EXAMPLE / "pyproject.toml", tmp_path)

    said = run(commands / "python", "-m", "pytest", cwd=tmp_path)

    assert " passed" in said and "skipped" not in said


def test_a_run_finds_the_skill_that_solves_every_task_of_the_test_split(finished):
    folder, _ = finished
    found = results(Store(folder / "wer.sqlite"))

    for family in ("accounts", "devices"):
        assert found.cell("refined", family).mean == 1.0
        assert found.cell("none", family).mean == 0.0


def test_neither_agent_nor_writer_sees_what_a_task_expects(finished):
    _, mock = finished
    seen = json.dumps(mock.requests, ensure_ascii=False)

    assert (
        "neither unlocked nor given" not in seen
    )  # nobody has read the policies, which are data of the desk
    assert '"expect"' not in seen
    assert "did not become" not in seen
