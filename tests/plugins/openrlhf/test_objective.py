"""The trainer's advantages and loss are the method's: OpenRLHF's own code beside WER's, on the same numbers."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from support.openrlhf_cpu import run_script

from wer_grpo.surrogate import advantages, surrogate
from wer_openrlhf.service import rounded

pytestmark = [pytest.mark.openrlhf, pytest.mark.slow]

SCRIPT = Path(__file__).parents[2] / "support/openrlhf_cpu/scripts/objective.py"
DICE = random.Random(0)
CLIP = 0.2
GROUPS = [[rounded(DICE.random()) for _ in range(4)] for _ in range(16)]
EQUAL = [[reward] * 3 for reward in (0.1, 0.4444, 0.5866667, 0.7, 0.9123, 1 / 3, 2 / 3)]
LENGTHS = (3, 7, 1, 5)
OLD = [[-DICE.random() * 3 for _ in range(length)] for length in LENGTHS]
NEW = [[value + DICE.uniform(-0.6, 0.6) for value in row] for row in OLD]


def asked(folder: Path, **what: Any) -> dict[str, Any]:
    (folder / "asked.json").write_text(json.dumps(what))
    answer: dict[str, Any] = run_script(SCRIPT, str(folder / "asked.json"))
    return answer


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    group = advantages(GROUPS[0], scaled=False)
    return asked(
        tmp_path_factory.mktemp("objective"), groups=GROUPS, new=NEW, old=OLD, advantages=group, clip=CLIP
    )


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Groups of three equal rewards: as they are, and rounded as the evaluation service does."""
    folder = tmp_path_factory.mktemp("equal")
    as_they_are = asked(folder, groups=EQUAL)
    return as_they_are, asked(folder, groups=[[rounded(value) for value in group] for group in EQUAL])


def test_dr_grpo_gives_each_candidate_its_deviation_from_the_groups_mean(theirs: dict[str, Any]):
    assert theirs["dr_grpo"] == [list(advantages(group, scaled=False)) for group in GROUPS]


def test_group_norm_divides_it_by_the_groups_standard_deviation(theirs: dict[str, Any]):
    for found, group in zip(theirs["group_norm"], GROUPS, strict=True):
        assert found == pytest.approx(advantages(group, scaled=True), rel=1e-5)


def test_the_loss_is_the_clipped_surrogate_of_the_group(theirs: dict[str, Any]):
    new = [torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in NEW]
    old = [torch.tensor(row, dtype=torch.float64) for row in OLD]
    ours = surrogate(new, old, advantages(GROUPS[0], scaled=False), clip=CLIP, ratio="token")
    ours.loss.backward()

    assert theirs["surrogate"]["loss"] == pytest.approx(ours.loss.item(), rel=1e-6)
    assert theirs["surrogate"]["clipped"] > 0
    for found, row in zip(theirs["surrogate"]["gradient"], new, strict=True):
        assert row.grad is not None
        assert found == pytest.approx(row.grad.tolist(), rel=1e-6, abs=1e-12)


def test_equal_rewards_that_are_not_rounded_get_large_advantages(equal: tuple[Any, Any]):
    as_they_are, _ = equal

    assert max(abs(value) for group in as_they_are["group_norm"] for value in group) > 1


@pytest.mark.parametrize("estimator", ["dr_grpo", "group_norm"])
def test_equal_rewards_as_the_service_rounds_them_get_none_at_all(equal: tuple[Any, Any], estimator: str):
    _, as_rounded = equal

    assert {value for group in as_rounded[estimator] for value in group} == {0.0}
