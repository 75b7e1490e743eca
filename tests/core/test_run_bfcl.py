"""``wer run --env bfcl --backend prompted`` from the first word to the report, on real tasks in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.mock_bfcl import player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.store import Store

SMALL = [
    "--domains=file_system,trading_bot",
    "--set=training.train_limit=2",
    "--set=training.k=2",
    "--set=training.phases=2",
    "--set=evaluation.trials=2",
    "--set=evaluation.test_limit=3",
    "--set=evaluation.conditions=['none','seed','refined']",
    "--set=refinement.rounds=1",
    "--set=executor_options.mode='native'",
]


def run(folder: Path, sandbox: str) -> tuple[Path, MockOpenAI]:
    environment = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(environment))) as mock:
        words = ["run", "--env=bfcl", f"--executor=openai/mock@{mock.url}", f"--sandbox={sandbox}", *SMALL]
        main_ok([*words, f"--runs={folder}"])
    (made,) = folder.iterdir()
    return made, mock


def main_ok(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def finished(request, tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"), request.param)


@pytest.mark.slow
def test_the_numbers_of_the_report_can_be_counted_again_from_the_store(finished):
    folder, _ = finished
    store = Store(folder / "wer.sqlite")

    counted: dict[str, list[bool]] = {}
    for condition, _domain, _task, _trial, passed in store.results():
        counted.setdefault(condition, []).append(passed)

    assert {name: len(found) for name, found in counted.items()} == {
        "none": 12,
        "seed": 12,
        "refined": 12,
        "no-op": 6,
    }
    found = results(store)
    for condition in ("none", "seed", "refined"):
        average = found.cell(condition, "average")
        assert average is not None
        assert average.mean == pytest.approx(sum(counted[condition]) / 12)
        assert f"{100 * average.mean:.1f}" in (folder / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_the_good_skill_was_found_published_and_is_better_than_none(finished):
    folder, _ = finished

    text = (folder / "skills" / "refined" / "bfcl-file-system" / "SKILL.md").read_text("utf-8")
    assert "Go to the right folder first." in text
    found = results(Store(folder / "wer.sqlite"))
    refined, none = found.cell("refined", "average"), found.cell("none", "average")
    assert refined is not None and none is not None
    assert refined.mean == 1.0 and none.mean == 0.0


@pytest.mark.slow
def test_every_stored_trajectory_is_judged_the_same_again(finished):
    folder, _ = finished
    store = Store(folder / "wer.sqlite")

    again = list(rejudge(store, plugins.load()))

    assert len(again) == store.count_rollouts()
    assert all(found.agrees for found in again)
    assert {found.now.passed for found in again} == {True, False}


@pytest.mark.slow
def test_the_executor_never_sees_the_expectation_and_the_tools_are_the_official_ones(finished):
    _, mock = finished
    acting = [body for body in mock.requests if body.get("tools")]

    assert acting
    assert all("possible_answer" not in json.dumps(body) for body in acting)
    names = {tool["function"]["name"] for body in acting for tool in body["tools"]}
    assert {"cd", "place_order"} <= names


@pytest.mark.slow
def test_showing_exporting_and_verifying_a_finished_run_work(finished, tmp_path, capfd):
    folder, _ = finished

    main_ok(["show", str(folder)])
    main_ok(["verify", str(folder)])
    main_ok(["export", str(folder), "--out", str(tmp_path / "skills")])
    main_ok(["export", str(folder), "--format", "jsonl", "--out", str(tmp_path / "lines.jsonl")])

    out, _ = capfd.readouterr()
    assert "+1. Go to the right folder first." in out
    assert "0 verdicts differ" in out
    lines = (tmp_path / "lines.jsonl").read_text().splitlines()
    assert all(json.loads(line)["rollouts"] for line in lines)
    assert (tmp_path / "skills" / "refined").is_dir()
