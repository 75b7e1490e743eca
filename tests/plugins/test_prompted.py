"""The untrained writer: groups in order, failures that stop the others, prompts that are too long."""

import asyncio

import pytest
from attrs import evolve
from support import tiny_writer
from support.tiny_writer import PaidByLetters

from wer.errors import ModelError, PromptTooLong
from wer.records import Reply, Usage
from wer_prompted.lengths import estimated_tokens
from wer_prompted.optimizer import Prompted

ANSWER = "<think>look</think>\n<skill>\nname: a\ndescription: b\n## Workflow\n1. Look.\n</skill>"


class Answering:
    """A model that always gives one answer, or fails on one task while the other calls wait."""

    def __init__(self, fail_on=None):
        self.fail_on = fail_on
        self.asked = self.cancelled = 0

    @property
    def identity(self):
        return {"provider": "answering"}

    async def complete(self, messages, tools, sampling):
        self.asked += 1
        if self.fail_on is None:
            return Reply(text=ANSWER, usage=Usage(calls=1, completion_tokens=3))
        if self.fail_on in messages[-1].content:
            raise ModelError("refused")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def close(self):
        pass


def prompted(model, **changes):
    given = {"open_model": lambda: model, "max_prompt_tokens": 1000, **changes}
    return Prompted(evolve(tiny_writer.setup("any", **given), options={}))


def some_too_long(*, round):
    short, other, last = tiny_writer.states(3, round=round)
    return [short, evolve(other, task=evolve(other.task, turns=("a" * 8000,))), last]


async def test_a_phase_gives_a_group_a_state_in_order(tmp_path):
    states = tiny_writer.states(3)

    outcome = await prompted(Answering()).run_phase(states, PaidByLetters(), tmp_path)

    assert [each.state.id for each in outcome.experiences] == [state.id for state in states for _ in range(4)]
    assert [each.candidate.index for each in outcome.experiences] == [0, 1, 2, 3] * 3


async def test_a_failure_cancels_the_other_calls_and_arrives_as_it_is(tmp_path):
    model = Answering(fail_on="bbb")

    with pytest.raises(ModelError, match="refused"):
        await prompted(model).run_phase(tiny_writer.states(3), PaidByLetters(), tmp_path)

    assert model.cancelled >= 8


async def test_proposals_fail_alike():
    model = Answering(fail_on="bbb")

    with pytest.raises(ModelError, match="refused"):
        await prompted(model).propose(tiny_writer.states(3), 2, 0)

    assert model.cancelled >= 4


async def test_a_phase_leaves_out_assembled_states_that_do_not_fit_and_says_so(tmp_path):
    lines, states = [], some_too_long(round=1)

    outcome = await prompted(Answering(), progress=lines.append).run_phase(states, PaidByLetters(), tmp_path)

    assert {each.state.id for each in outcome.experiences} == {states[0].id, states[2].id}
    assert lines == ["1 of 3 states are over 1,000 prompt tokens (estimated) and left out"]


async def test_a_phase_without_any_state_that_fits_is_refused(tmp_path):
    states = tiny_writer.states(2, round=1)

    with pytest.raises(PromptTooLong, match="task 't0'"):
        await prompted(Answering(), max_prompt_tokens=5).run_phase(states, PaidByLetters(), tmp_path)


async def test_a_seed_state_that_does_not_fit_is_refused_before_anything_is_asked():
    model = Answering()

    with pytest.raises(PromptTooLong, match="task 't1' has about"):
        await prompted(model).propose(some_too_long(round=0), 2, 0)

    assert not model.asked


async def test_a_proposal_for_a_state_that_does_not_fit_is_a_group_without_skills():
    groups = await prompted(Answering()).propose(some_too_long(round=1), 2, 0)

    assert [[each.problem for each in group] for group in groups] == [
        ["", ""],
        ["prompt too long"] * 2,
        ["", ""],
    ]


def test_tokens_are_estimated_at_four_characters_each():
    short, long, _ = some_too_long(round=0)

    assert estimated_tokens(long) - estimated_tokens(short) == pytest.approx(8000 / 4, abs=2)
