"""The folder that this backend leaves is a writer like any other: ``wer refine`` and ``wer eval`` take it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mock_bfcl import DRAFT, GOOD, player, serving
from support.mock_openai import MockOpenAI
from support.phrase_writer import make_phrase_writer
from support.stand_in import STAND_IN, PaidByLetters, optimizer, phase, unchecked
from support.tiny_writer import states

from wer import plugins
from wer.cli import main
from wer.store import Store
from wer_openrlhf import preflight

pytestmark = pytest.mark.slow

SKILL = "---\nname: bfcl-skill\ndescription: Multi-turn tool use.\n---\n## Workflow\n1. Read the request.\n"


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a phase by the stand-in leaves of a writer that always advises the good step."""
    folder = tmp_path_factory.mktemp("run")
    writer = make_phrase_writer(folder / "writer", {GOOD: 1.0, DRAFT: 1e-9})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(STAND_IN))
        patch.setattr(preflight, "check", unchecked)
        trained = optimizer(writer)
        asyncio.run(trained.run_phase(states(2), PaidByLetters(), phase(folder)))
        trained.save(folder / "checkpoints" / "final")
    yield folder / "checkpoints" / "final" / "merged"


def ended_well(words: list[str], merged: Path, runs: Path) -> Store:
    """Perform a command with that writer on this processor, and give the store of its run."""
    environment = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(environment))) as mock, pytest.raises(SystemExit) as ended:
        model = f"openai/mock@{mock.url}"
        main(
            [
                *(*words, "--env=bfcl", "--backend=grpo", f"--writer={merged}", f"--executor={model}"),
                *("--domains=file_system,trading_bot", "--sandbox=process", f"--runs={runs}"),
                *(f"--set=seed_writer={model}", f"--set=merge_writer={model}"),
                *("--set=training.train_limit=2", "--set=refinement.rounds=1", "--set=training.k=2"),
                *("--set=training.max_response_tokens=8", "--set=executor_options.mode='native'"),
                "--set=evaluation.test_limit=2",
            ]
        )
    assert not ended.value.code
    (folder,) = runs.iterdir()
    return Store(folder / "wer.sqlite")


def test_a_trained_writer_refines_a_skill(merged: Path, tmp_path: Path):
    (tmp_path / "SKILL.md").write_text(SKILL)

    store = ended_well(["refine", str(tmp_path / "SKILL.md")], merged, tmp_path / "runs")

    written = [found.candidate.skill for stage, found in store.experiences() if stage.startswith("refine/")]
    assert written and all(skill is not None and GOOD in skill.body for skill in written)


def test_a_trained_writer_is_measured(merged: Path, tmp_path: Path):
    store = ended_well(["eval", "--trials=1"], merged, tmp_path / "runs")

    assert {"none", "seed", "refined"} <= {condition for condition, *_ in store.results()}
