"""What the GRPO writer spends is booked, and what does not fit its prompt is left out or refused."""

import pytest
from attrs import evolve
from support import tiny_writer
from support.tiny_writer import PaidByLetters

from wer.errors import BudgetExhausted, PromptTooLong
from wer.records import Usage
from wer_grpo.optimizer import Grpo

LIMIT = 60


@pytest.fixture
def folder(tmp_path):
    return tiny_writer.make_folder(tmp_path / "writer")


class Meter:
    """Adds up what is charged; the check fails from the given spend on."""

    def __init__(self, cap=10**9):
        self.spent = Usage()
        self.cap = cap

    def check(self):
        if self.spent.completion_tokens >= self.cap:
            raise BudgetExhausted("the cap is reached")

    def charge(self, usage):
        self.spent = self.spent + usage


def metered(folder, meter, **changes):
    return Grpo(tiny_writer.setup(folder, check=meter.check, charge=meter.charge, **changes))


def some_too_long(*, round):
    """Three states, of which the second is over the limit."""
    short, other, last = tiny_writer.states(3, round=round)
    return [short, evolve(other, task=evolve(other.task, turns=("a" * 60,))), last]


async def test_what_a_phase_writes_is_charged_with_each_prompt_once_a_group(folder, tmp_path):
    meter = Meter()
    optimizer = metered(folder, meter)
    states = tiny_writer.states(3)

    outcome = await optimizer.run_phase(states, PaidByLetters(), tmp_path / "phase")

    candidates = [each.candidate for each in outcome.experiences]
    assert meter.spent.calls == 12
    assert meter.spent.completion_tokens == sum(len(each.token_ids) for each in candidates)
    assert meter.spent.prompt_tokens == sum(len(optimizer._writer.prompt(state)) for state in states)
    assert sum((each.usage for each in candidates), Usage()) == meter.spent
    assert meter.spent.usd == 0.0


async def test_recorded_candidates_are_not_charged_again(folder, tmp_path):
    states, evaluate = tiny_writer.states(3), PaidByLetters()
    await Grpo(tiny_writer.setup(folder)).run_phase(states, evaluate, tmp_path / "one")
    meter = Meter(cap=0)

    await metered(folder, meter).run_phase(states, evaluate, tmp_path / "two")

    assert meter.spent == Usage()


async def test_proposals_are_charged(folder):
    meter = Meter()

    groups = await metered(folder, meter).propose(tiny_writer.states(3), 2, 0)

    assert meter.spent == sum((each.usage for group in groups for each in group), Usage())
    assert meter.spent.calls == 6


async def test_a_cap_stops_before_the_next_batch_is_sampled(folder, tmp_path):
    meter, evaluate = Meter(cap=1), PaidByLetters()

    with pytest.raises(BudgetExhausted):
        await metered(folder, meter).run_phase(tiny_writer.states(4), evaluate, tmp_path / "phase")

    assert meter.spent.calls == 8
    assert len(evaluate.groups) == 2


async def test_a_phase_leaves_out_assembled_states_that_do_not_fit_and_says_so(folder, tmp_path):
    lines = []
    optimizer = Grpo(tiny_writer.setup(folder, max_prompt_tokens=LIMIT, progress=lines.append))
    states = some_too_long(round=1)

    outcome = await optimizer.run_phase(states, PaidByLetters(), tmp_path / "phase")

    assert {each.state.id for each in outcome.experiences} == {states[0].id, states[2].id}
    assert f"1 of 3 states are over {LIMIT} prompt tokens and left out" in lines


async def test_a_phase_without_any_state_that_fits_is_refused(folder, tmp_path):
    optimizer = Grpo(tiny_writer.setup(folder, max_prompt_tokens=5))

    with pytest.raises(PromptTooLong, match="task 't0'"):
        await optimizer.run_phase(tiny_writer.states(2, round=1), PaidByLetters(), tmp_path / "phase")


async def test_a_seed_state_that_does_not_fit_is_refused_even_beside_others(folder, tmp_path):
    optimizer = Grpo(tiny_writer.setup(folder, max_prompt_tokens=LIMIT))

    with pytest.raises(PromptTooLong, match="task 't1'"):
        await optimizer.run_phase(some_too_long(round=0), PaidByLetters(), tmp_path / "phase")


async def test_a_proposal_for_a_state_that_does_not_fit_is_a_group_without_skills(folder):
    optimizer = Grpo(tiny_writer.setup(folder, max_prompt_tokens=LIMIT))

    groups = await optimizer.propose(some_too_long(round=1), 2, 0)

    assert [len(group) for group in groups] == [2, 2, 2]
    assert [(each.index, each.skill, each.text, each.problem) for each in groups[1]] == [
        (0, None, "", "prompt too long"),
        (1, None, "", "prompt too long"),
    ]
    assert all(each.token_ids for each in (*groups[0], *groups[2]))
