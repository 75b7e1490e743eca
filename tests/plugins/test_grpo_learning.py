"""Does the policy learn? Rewards must rise, and only because they belong to their candidates."""

import random
from statistics import mean

import pytest
from scipy.stats import ttest_rel
from support import tiny_writer
from support.tiny_writer import PaidByLetters

from wer_grpo.optimizer import Grpo

SEEDS = range(6)


async def gain(tmp_path, seed, *, shuffled):
    dice = random.Random(seed)
    arrange = (lambda values: dice.sample(values, len(values))) if shuffled else list
    evaluate = PaidByLetters(arrange=arrange)
    folder = tiny_writer.make_folder(tmp_path / f"writer-{seed}-{shuffled}", seed=seed)
    options = {"dtype": "float32", "learning_rate": 5e-3, "batch": 4, "warmup": 0.0}
    optimizer = Grpo(tiny_writer.setup(folder, seed=seed, k=8, top_k=0, options=options))
    await optimizer.run_phase(tiny_writer.states(32), evaluate, tmp_path / f"phase-{seed}-{shuffled}")
    return mean(evaluate.means[-2:]) - mean(evaluate.means[:2])


@pytest.mark.slow
async def test_rewards_rise_and_shuffled_rewards_teach_nothing(tmp_path):
    taught = [await gain(tmp_path, seed, shuffled=False) for seed in SEEDS]
    misled = [await gain(tmp_path, seed, shuffled=True) for seed in SEEDS]

    assert mean(taught) > 0.15
    assert ttest_rel(taught, misled, alternative="greater").pvalue < 0.01
