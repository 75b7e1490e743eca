"""Each kind of scaffold as its author's users have it: built, installed in a clean environment, checked and run."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import get_args

import pytest
from support.building import built
from support.clean_venv import ROOT, clean_venv, run
from support.mock_bfcl import acting, serving
from support.mock_openai import MockOpenAI

from wer import scaffolds
from wer.records import ToolCall
from wer.reports.results import results
from wer.store import Store

KINDS = get_args(scaffolds.Kind)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An environment with WER and one plugin of each kind, ``my_KIND``, that was written in it."""
    folder = tmp_path_factory.mktemp("stranger")
    commands = clean_venv(folder / "venv", built(ROOT, folder), also=["pytest", "pytest-asyncio"])
    for kind in KINDS:
        run(commands / "wer", "plugin", "new", f"my_{kind}", f"--kind={kind}", cwd=folder)
    projects = {kind: folder / f"wer-plugin-my-{kind}" for kind in KINDS}
    wheels = [built(project, folder) for project in projects.values()]
    run(commands / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", *wheels)
    tasks = (projects["domain"] / "wer_my_domain" / "tasks.jsonl").read_text("utf-8").splitlines()
    references = {
        task["query"]: [ToolCall(**call) for call in task["reference"]] for task in map(json.loads, tasks)
    }
    return SimpleNamespace(projects=projects, commands=commands, references=references)


def wer(stranger, *words, cwd):
    return run(stranger.commands / "wer", *words, cwd=cwd)


@pytest.mark.parametrize("kind", KINDS)
def test_its_own_tests_pass_at_once(stranger, kind):
    said = run(stranger.commands / "python", "-m", "pytest", "-rs", cwd=stranger.projects[kind])

    assert " passed" in said


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("domain", ["--sandbox=process"]),
        ("verifier", ["--env=my_domain", "--sandbox=process"]),
        ("optimizer", []),
        ("executor", []),
        ("model", ["--model=my_model/mock@{url}"]),
    ],
)
def test_it_passes_the_checks_of_its_kind(stranger, kind, options, tmp_path):
    with serving(MockOpenAI(default=acting({}))) as mock:
        words = [option.format(url=mock.url) for option in options]
        said = wer(stranger, "plugin", "check", f"my_{kind}", *words, cwd=tmp_path)

    assert " ok" in said and "failed" not in said
    if kind in ("domain", "verifier"):
        assert "references" in said


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("domain", []),
        ("verifier", ["--verifier=my_verifier"]),
        ("optimizer", ["--backend=my_optimizer"]),
        ("executor", ["--agent=my_executor"]),
        ("model", ["--executor=my_model/mock@{url}"]),
    ],
)
def test_a_run_works_with_it(stranger, kind, options, tmp_path):
    with serving(MockOpenAI(default=acting(stranger.references))) as mock:
        usual = {
            "--env": "my_domain",
            "--backend": "prompted",
            "--executor": f"openai/mock@{mock.url}",
            "--sandbox": "process",
            "--runs": tmp_path,
        }
        usual |= dict(option.format(url=mock.url).split("=", 1) for option in options)
        settings = {
            "training.train_limit": 2,
            "training.k": 2,
            "training.phases": 1,
            "evaluation.trials": 1,
            "evaluation.conditions": '["none", "refined"]',
            "refinement.rounds": 1,
        }
        if kind != "executor":
            settings["executor_options.mode"] = "'native'"
        words = [f"{name}={value}" for name, value in usual.items()]
        words += [f"--set={name}={value}" for name, value in settings.items()]
        wer(stranger, "run", *words, cwd=tmp_path)

    (folder,) = tmp_path.iterdir()
    found = results(Store(folder / "wer.sqlite"))
    assert found.cell("none", "my_domain").mean == 0.0
    if kind != "optimizer":  # its rules are not the one that the mock heeds
        assert found.cell("refined", "my_domain").mean == 1.0
