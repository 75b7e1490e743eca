"""The folder that this backend leaves is a writer like any other: ``wer refine`` and ``wer eval`` take it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mock_bfcl import DRAFT, GOOD
from support.phrase_writer import make_phrase_writer
from support.stand_in import STAND_IN, PaidByLetters, optimizer, phase, unchecked
from support.tiny_writer import states
from support.trained_writer import ended_well, refined

from wer_openrlhf import preflight

pytestmark = pytest.mark.slow


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


def test_a_trained_writer_refines_a_skill(merged: Path, tmp_path: Path):
    written = refined(merged, tmp_path)

    assert written and all(GOOD in body for body in written)


def test_a_trained_writer_is_measured(merged: Path, tmp_path: Path):
    store = ended_well(["eval", "--trials=1"], merged, tmp_path / "runs")

    assert {"none", "seed", "refined"} <= {condition for condition, *_ in store.results()}
