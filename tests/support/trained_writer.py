"""What a training leaves is put to use: a command with that folder as its writer, on this processor."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.mock_bfcl import player, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.store import Store

SKILL = "---\nname: bfcl-skill\ndescription: Multi-turn tool use.\n---\n## Workflow\n1. Read the request.\n"


def ended_well(words: Sequence[str], merged: Path, runs: Path) -> Store:
    """Perform a command with that writer, and give the store of its run."""
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


def refined(merged: Path, folder: Path) -> list[str]:
    """The bodies of the skills that ``wer refine`` got from that writer; "" where it wrote none."""
    (folder / "SKILL.md").write_text(SKILL)
    store = ended_well(["refine", str(folder / "SKILL.md")], merged, folder / "refined")
    written = [found.candidate.skill for stage, found in store.experiences() if stage.startswith("refine/")]
    return [skill.body if skill is not None else "" for skill in written]
