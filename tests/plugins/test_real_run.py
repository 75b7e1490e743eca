"""The whole loop on a real small model: torch executes, GRPO trains, the sandbox runs, the verdict is official."""

from __future__ import annotations

from pathlib import Path

import pytest

from wer import plugins
from wer.cli import main
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.store import Store

_SKILL = Path(__file__).parent.parent.parent / "examples" / "skills" / "file-system-basics"


@pytest.mark.llm
@pytest.mark.slow
def test_preset_cpu_in_the_small_trains_a_writer_and_measures_its_skills(tmp_path):
    words = [
        "run",
        "--preset=cpu",
        "--sandbox=process",
        f"--runs={tmp_path}",
        f"--set=seed_skill='{_SKILL}'",
        "--set=training.k=2",
        "--set=training.phases=1",
        "--set=training.states_per_phase=1",
        "--set=training.max_response_tokens=64",
        "--set=refinement.rounds=0",
        "--set=evaluation.test_limit=3",
    ]

    with pytest.raises(SystemExit) as ended:
        main(words)

    assert not ended.value.code
    (folder,) = tmp_path.iterdir()
    store = Store(folder / "wer.sqlite")
    assert [stage for stage, _ in store.experiences()] == ["train/0"] * 2
    assert store.metrics()[0][2]["generation_s"] > 0
    assert (folder / "checkpoints" / "final" / "merged" / "config.json").is_file()
    assert (folder / "checkpoints" / "final" / "merged" / "wer-writer.json").is_file()
    assert set(results(store).conditions) == {"none", "seed", "refined", "no-op"}
    again = list(rejudge(store, plugins.load()))
    assert again and all(found.agrees for found in again)
    assert "prefix task: not the benchmark" in (folder / "report.md").read_text("utf-8")
