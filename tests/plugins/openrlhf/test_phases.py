"""How states become whole batches."""

from pathlib import Path

import pytest
from support.tiny_writer import states

from wer_openrlhf.options import OpenRlhfOptions
from wer_openrlhf.phases import Phase, plan


def planned(count: int, *, batch: int = 6, unit: int = 1) -> Phase:
    return plan(states(count), folder=Path("checkpoints/phase-0"), batch=batch, unit=unit, seed=0)


@pytest.mark.parametrize(
    ("count", "unit", "batch", "prompts"),
    [(12, 1, 6, 12), (13, 1, 6, 18), (4, 1, 4, 4), (3, 2, 4, 4), (1, 4, 4, 4)],
)
def test_prompts_fill_whole_batches_and_every_state_is_among_them(
    count: int, unit: int, batch: int, prompts: int
):
    phase = planned(count, unit=unit)

    assert (phase.batch, len(phase.prompts)) == (batch, prompts)
    assert {state.id for state in phase.prompts} == {state.id for state in states(count)}


def test_the_last_batch_of_a_phase_always_has_a_checkpoint():
    assert [planned(6 * rounds).checkpoint_every(4) for rounds in (1, 6, 7, 8)] == [1, 3, 1, 4]


def test_a_batch_gives_every_gpu_whole_steps():
    options = OpenRlhfOptions(gpus_per_node=8, micro_batch=1, minibatch=2)

    assert options.unit(k=4) == 2
    assert OpenRlhfOptions(gpus_per_node=8).unit(k=3) == 8
