"""What critic and actor may answer, and how a refusal is fed back."""

import json

import pytest
from attrs import evolve
from support import tiny_writer
from support.skiller_world import Scribe, diagnosis

from wer.errors import PromptTooLong
from wer.plugins import load
from wer.records import End, Evidence, Message, Rollout, Sampling, Trajectory, Verdict
from wer.replies import Replies
from wer_skiller.actor import read_edits
from wer_skiller.critic import FAILURES, read_diagnosis
from wer_skiller.talking import Refusal, Talk

EDIT = {"op": "insert", "path": "SKILL.md", "anchor": "a", "text": "b"}
ASKED = (Message(role="system", content="You are the critic"), Message(role="user", content="Judge."))


@pytest.mark.parametrize("failure", FAILURES)
def test_a_diagnosis_has_one_of_the_papers_classes(failure):
    assert read_diagnosis(diagnosis(failure=failure), steps=1).failure == failure


def test_json_in_a_code_fence_is_read():
    assert read_diagnosis(f"```json\n{diagnosis()}\n```", steps=1).step == 1


@pytest.mark.parametrize("step", [-1, 3, 1.0, "1", True, None])
def test_a_step_that_there_is_not_is_refused(step):
    with pytest.raises(Refusal, match="0 to 2"):
        read_diagnosis(diagnosis(step=step), steps=2)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (None, "1 to 2 edits"),
        ([], "1 to 2 edits"),
        ([EDIT] * 3, "1 to 2 edits"),
        (["x"], "edit 1 must be an object"),
        ([EDIT, {**EDIT, "text": 3}], "edit 2 must be an object"),
        ([{**EDIT, "op": "append"}], "must be one of insert, replace, create, delete"),
    ],
)
def test_edits_that_are_none_are_refused(listed, reason):
    with pytest.raises(Refusal, match=reason):
        read_edits(json.dumps({"edits": listed}), max_edits=2)


async def settle(scribe, read, **changes):
    setup = tiny_writer.setup("any", options={}, max_prompt_tokens=1000, **changes)
    talk = Talk(writer=Replies(who="SKILLER", model=scribe, setup=setup))
    return talk, await talk.settle("critic", ASKED, Sampling(), read)


async def test_a_refused_answer_comes_back_with_the_reason_and_both_are_kept():
    async def read(text):
        if text == "no":
            raise Refusal("too short")
        return text

    scribe = Scribe(critic=["no", "yes"])

    talk, answer = await settle(scribe, read)

    assert answer == "yes"
    assert talk.texts == ["# critic\nno", "# critic\nyes"]
    assert talk.usage.calls == 2
    assert [message.content for message in scribe.asked[1][1][2:]] == [
        "no",
        "That was refused:\ntoo short\nAnswer again, completely, as the same kind of JSON.",
    ]


async def test_a_second_refusal_is_the_last():
    async def read(text):
        raise Refusal("never")

    scribe = Scribe(critic=["no"])

    with pytest.raises(Refusal, match="critic: never"):
        await settle(scribe, read)
    assert len(scribe.asked) == 2


async def test_an_answer_that_is_too_long_to_be_fed_back_is_a_refusal_and_ends_no_run():
    async def read(text):
        raise Refusal("no JSON")

    setup = tiny_writer.setup("any", options={}, max_prompt_tokens=100)
    talk = Talk(writer=Replies(who="SKILLER", model=Scribe(critic=["x" * 1000]), setup=setup))

    with pytest.raises(Refusal, match="critic: no JSON"):
        await talk.settle("critic", ASKED, Sampling(), read)


async def test_a_request_that_is_too_long_is_refused_and_not_cut():
    setup = tiny_writer.setup("any", options={}, max_prompt_tokens=3)

    with pytest.raises(PromptTooLong, match="never truncates"):
        await Replies(who="SKILLER", model=Scribe(critic=["x"]), setup=setup).ask(ASKED, Sampling())


async def test_too_long_is_an_error_of_a_first_state_and_leaves_a_later_one_without_a_skill():
    setup = tiny_writer.setup("any", max_prompt_tokens=3, open_model=lambda: Scribe())
    skiller = load().optimizers.make("skiller", evolve(setup, options={}))
    [state] = tiny_writer.states(1)
    skill = evolve(state.skill, description="d")
    failed = evolve(state, skill=skill, evidence=(tiny_rollout(state),))

    with pytest.raises(PromptTooLong):
        await skiller.propose([failed], 1, 0)
    [[candidate]] = await skiller.propose([evolve(failed, round=1)], 1, 0)

    assert candidate.skill is None
    assert "never truncates" in candidate.problem


def tiny_rollout(state):
    return Rollout(
        key="k",
        task_id=state.task.id,
        skill_id=state.skill.id,
        seed=0,
        trajectory=Trajectory(messages=("go",), steps=(), end=End(by="agent"), seed=0),
        evidence=Evidence(turns=(), end=End(by="agent")),
        verdict=Verdict(score=0.0, passed=False),
    )
