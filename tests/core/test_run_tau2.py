"""``wer run`` and ``wer eval`` over tau2 from the first word to the report, on real tasks in real sandboxes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.mock_bfcl import GOOD, serving
from support.mock_openai import MockOpenAI
from support.mock_tau2 import player

from wer import plugins
from wer.cli import main
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.store import Store

SMALL = [
    "--set=training.train_limit=1",
    "--set=training.k=2",
    "--set=training.phases=1",
    "--set=evaluation.test_limit=2",
    "--set=evaluation.trials=1",
    "--set=refinement.rounds=1",
]
CONDITIONS = "--set=evaluation.conditions=['none','refined']"
TAU2 = ["--env=tau2", "--domains=airline,retail,telecom", "--backend=prompted"]


def perform(folder: Path, words: Sequence[str], sandbox: str = "process") -> tuple[Path, MockOpenAI]:
    bfcl = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(bfcl))) as mock:
        model = f"openai/mock@{mock.url}"
        main_ok(
            [
                *words,
                f"--executor={model}",
                f"--user-model={model}",
                f"--sandbox={sandbox}",
                f"--runs={folder}",
                *SMALL,
            ]
        )
    (made,) = folder.iterdir()
    return made, mock


def main_ok(words: Sequence[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code


def verdicts(folder: Path) -> dict[str, bool]:
    store = Store(folder / "wer.sqlite")
    return {rollout.key: rollout.verdict.passed for rollout, _, _ in store.rollouts()}


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def finished(request, tmp_path_factory):
    return perform(tmp_path_factory.mktemp("runs"), ["run", *TAU2, CONDITIONS], request.param)


@pytest.mark.slow
def test_the_good_skill_is_better_than_none_in_every_domain(finished):
    folder, _ = finished
    found = results(Store(folder / "wer.sqlite"))

    for domain in ("airline", "retail", "telecom"):
        refined, none = found.cell("refined", domain), found.cell("none", domain)
        assert refined is not None and none is not None
        assert refined.mean >= none.mean
    assert found.cell("refined", "airline").mean == found.cell("refined", "retail").mean == 1.0


@pytest.mark.slow
def test_the_user_has_a_line_of_its_own_in_the_costs(finished):
    folder, mock = finished
    asked = [body for body in mock.requests if "<scenario>" in body["messages"][0]["content"]]

    assert Store(folder / "wer.sqlite").spend()["user"].calls == len(asked)
    assert f"| user | {len(asked)} |" in (folder / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_the_report_says_who_ended_the_episodes(finished):
    folder, _ = finished

    report = (folder / "report.md").read_text("utf-8")

    assert "| tau2 | user | stop |" in report
    assert "| tau2 | agent | stopped | 6 |" in report


@pytest.mark.slow
def test_neither_agent_nor_writer_sees_the_users_scenario_or_the_reference(finished):
    _, mock = finished
    others = [
        json.dumps(body) for body in mock.requests if "<scenario>" not in body["messages"][0]["content"]
    ]

    assert others
    assert not any("task_instructions" in text or "Reason for call" in text for text in others)
    assert not any("action_id" in text for text in others)


@pytest.mark.slow
def test_every_stored_episode_is_judged_the_same_again(finished):
    folder, _ = finished

    again = list(rejudge(Store(folder / "wer.sqlite"), plugins.load()))

    assert all(found.agrees for found in again)
    assert {found.now.passed for found in again} == {True, False}


@pytest.mark.slow
def test_two_runs_with_the_same_seeds_give_the_same_verdicts(finished, tmp_path):
    first, _ = finished

    second, _ = perform(tmp_path, ["run", *TAU2, CONDITIONS])

    # The mock's address is part of what a model is, so the keys differ and the course doesn't.
    assert list(verdicts(first).values()).count(True) == list(verdicts(second).values()).count(True)
    assert sorted(Store(first / "wer.sqlite").results()) == sorted(Store(second / "wer.sqlite").results())


@pytest.mark.slow
def test_bfcl_and_tau2_are_trained_together(tmp_path):
    words = ["run", "--env=bfcl", "--env=tau2", "--domains=file_system,airline", CONDITIONS]

    folder, _ = perform(tmp_path, words)

    store = Store(folder / "wer.sqlite")
    trained = {experience.state.task.env for stage, experience in store.experiences() if stage == "train/0"}
    assert trained == {"bfcl", "tau2"}
    assert results(store).domains == ("bfcl/file_system", "tau2/airline")


@pytest.mark.slow
def test_a_skill_is_measured_beside_the_agent_that_does_nothing(tmp_path):
    skill = tmp_path / "SKILL.md"
    skill.write_text(f"---\nname: s\ndescription: d\n---\n## Workflow\n1. {GOOD}\n", "utf-8")
    words = ["eval", str(skill), "--env=tau2", "--domains=airline,retail"]

    folder, _ = perform(tmp_path / "runs", words)

    found = results(Store(folder / "wer.sqlite"))
    cells = {
        (condition, domain): found.cell(condition, domain).mean
        for condition in ("skill", "no-op")
        for domain in ("airline", "retail")
    }
    assert cells["skill", "airline"] == cells["skill", "retail"] == 1.0
    assert cells["no-op", "retail"] == 0.0
