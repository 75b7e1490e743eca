"""``wer eval --writer``: what a model, or a checkpoint, makes of seed skills, measured without training it."""

from pathlib import Path

import pytest
from support.mock_bfcl import player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.store import Store

SMALL = [
    "--domains=file_system,trading_bot",
    "--sandbox=process",
    "--set=training.train_limit=2",
    "--set=refinement.rounds=1",
    "--set=evaluation.test_limit=2",
    "--set=executor_options.mode='native'",
]


@pytest.mark.slow
def test_a_writer_is_measured_by_its_revisions_and_not_trained(tmp_path: Path):
    environment = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(environment))) as mock, pytest.raises(SystemExit) as ended:
        model = f"openai/mock@{mock.url}"
        main(
            [
                *("eval", "--env=bfcl", f"--writer={model}", f"--executor={model}", "--trials=1"),
                *(*SMALL, f"--runs={tmp_path}"),
            ]
        )

    assert not ended.value.code
    (folder,) = tmp_path.iterdir()
    measured = {condition for condition, *_ in Store(folder / "wer.sqlite").results()}
    assert {"none", "seed", "refined"} <= measured
    assert "untrained" not in measured


def test_neither_skill_nor_writer_is_refused_with_both_remedies(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["eval", "--env=bfcl", "--executor=openai/m"])

    said = " ".join(capsys.readouterr().err.split())
    assert "name a SKILL.md or its folder, or --writer" in said


def test_a_writer_cannot_be_measured_on_the_tasks_that_it_revises_skills_on(
    capsys: pytest.CaptureFixture[str],
):
    with pytest.raises(SystemExit):
        main(["eval", "--env=bfcl", "--executor=openai/m", "--writer=openai/m", "--split=train"])

    assert "revises skills on the training split" in " ".join(capsys.readouterr().err.split())
