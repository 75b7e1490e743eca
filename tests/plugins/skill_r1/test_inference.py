"""Skill-R1 without gradient steps: the recurrence and its history, with a scripted model as the writer."""

import pytest
from attrs import evolve
from support import tiny_writer
from support.generations import BAD, GOOD, PaidBySkill, Scribe, document, rollout

from wer import plugins
from wer.configuration import RunConfig
from wer.contracts import Notebook
from wer.errors import ConfigError, PromptTooLong
from wer.methods import configurations, named
from wer.writing import render_trajectory
from wer_skill_r1.optimizer import inference, trained

MIXED = "Act, then look."


def made(scribe, **changes):
    given = {"open_model": lambda: scribe, "max_prompt_tokens": 5000, "k": 3, **changes}
    return inference(evolve(tiny_writer.setup("any", **given), options={}))


def start(number=0, *, round=0):
    state = tiny_writer.states(number + 1, round=round)[number]
    seeded = tuple(rollout(state, state.skill, seed, score) for seed, score in enumerate((0.0, 1.0)))
    return evolve(state, evidence=seeded)


async def test_each_generation_is_written_from_all_earlier_ones_verbatim(tmp_path):
    scribe = Scribe(*(document(step) for step in (BAD, MIXED, GOOD)))
    state = start()

    outcome = await made(scribe).run_phase([state], PaidBySkill(), tmp_path)

    seen = [(state.skill, state.evidence)]
    seen += [(each.candidate.skill, each.rollouts) for each in outcome.experiences]
    assert len(scribe.requests) == 3
    for generation, request in enumerate(scribe.requests):
        for number, (skill, rollouts) in enumerate(seen):
            earlier = number <= generation
            assert (f"# Generation {number}: rewards" in request) == earlier
            assert (skill.body.splitlines()[-1] in request) == earlier
            assert all((render_trajectory(each.trajectory) in request) == earlier for each in rollouts)
    assert "# Generation 1: rewards 0, 0; mean 0" in scribe.requests[1]
    assert "# Generation 2: rewards 1, 0; mean 0.5" in scribe.requests[2]


async def test_a_generation_starts_from_the_skill_of_the_one_before(tmp_path):
    scribe = Scribe(*(document(step) for step in (BAD, MIXED, GOOD)))

    outcome = await made(scribe).run_phase([start()], PaidBySkill(), tmp_path)

    first, second, third = outcome.experiences
    assert [each.state.round for each in outcome.experiences] == [0, 1, 2]
    assert (second.state.skill, second.state.evidence) == (first.candidate.skill, first.rollouts)
    assert (third.state.skill, third.state.parent) == (second.candidate.skill, second.candidate.id)


async def test_an_answer_without_a_skill_is_told_and_changes_nothing_else(tmp_path):
    scribe = Scribe("nonsense", document(GOOD))

    outcome = await made(scribe, k=2).run_phase([start()], PaidBySkill(), tmp_path)

    first, second = outcome.experiences
    assert "# Generation 1: reward 0\n(no skill could be read: no <skill>" in scribe.requests[1]
    assert second.state.skill == first.state.skill
    assert second.state.id != first.state.id


async def test_a_resumed_run_asks_nothing_twice(tmp_path):
    answers = [document(step) for step in (BAD, MIXED, GOOD)]
    whole = await made(Scribe(*answers)).run_phase([start()], PaidBySkill(), tmp_path)
    evaluate, scribe = PaidBySkill(fail_at=3), Scribe(*answers)
    with pytest.raises(RuntimeError, match="killed"):
        await made(scribe).run_phase([start()], evaluate, tmp_path)

    rest = await made(scribe).run_phase([start()], evaluate, tmp_path)

    assert rest == whole
    assert len(scribe.requests) == 3


async def test_of_several_states_of_a_task_the_first_is_where_it_begins(tmp_path):
    one, other = start(0), start(1)
    again = evolve(one, round=3)

    outcome = await made(Scribe(document(GOOD)), k=1).run_phase([one, other, again], PaidBySkill(), tmp_path)

    assert [each.state.id for each in outcome.experiences] == [one.id, other.id]


async def test_refinement_rounds_go_on_with_the_history_of_the_candidate_behind_them():
    scribe, notes = Scribe(document(BAD), document(GOOD)), Notebook()
    optimizer = made(scribe, notes=notes)
    [[candidate]] = await optimizer.propose([start()], 1, 0)
    ran = tuple(rollout(start(), candidate.skill, seed, 0.0) for seed in range(2))
    after = evolve(start(), skill=candidate.skill, evidence=ran, parent=candidate.id, round=1)

    await made(scribe, notes=notes).propose([after], 1, 0)

    assert "# Generation 0: rewards 0, 1; mean 0.5" in scribe.requests[1]
    assert "# Generation 1: rewards 0, 0; mean 0" in scribe.requests[1]
    assert "Generation 2" not in scribe.requests[1]


async def test_a_history_over_the_limit_ends_its_chain_and_is_never_cut(tmp_path):
    said = []
    scribe = Scribe(document(BAD))
    optimizer = made(scribe, k=4, max_prompt_tokens=1200, progress=said.append)

    outcome = await optimizer.run_phase([start()], PaidBySkill(), tmp_path)

    assert 0 < len(outcome.experiences) == len(scribe.requests) < 4
    assert any("their history is over 1,200 prompt tokens" in line for line in said)


async def test_a_seed_state_that_does_not_fit_is_refused_before_anything_is_asked(tmp_path):
    scribe = Scribe(document(BAD))

    with pytest.raises(PromptTooLong, match=r"task 't0' is \d+ tokens over the limit, at most 50"):
        await made(scribe, max_prompt_tokens=50).run_phase([start()], PaidBySkill(), tmp_path)

    assert scribe.requests == []


async def test_a_later_state_that_does_not_fit_gets_candidates_without_a_skill():
    [group] = await made(Scribe(document(BAD)), max_prompt_tokens=50).propose([start(round=1)], 2, 0)

    assert [(each.index, each.skill, each.problem) for each in group] == [
        (0, None, "prompt too long"),
        (1, None, "prompt too long"),
    ]


def test_the_untrained_variant_is_called_inference_wherever_a_backend_is_named():
    config = RunConfig(
        env=("bfcl",), executor="openai/any", methods=named(["skill_r1", "skill_r1_inference"])
    )

    found = configurations(config)

    assert {name: each.backend for name, each in found.items()} == {
        "skill_r1": "skill_r1",
        "skill_r1_inference": "skill_r1_inference",
    }
    assert found["skill_r1_inference"].training.phases == 0
    assert not made(Scribe("")).learns
    assert {"skill_r1", "skill_r1_inference"} <= set(plugins.load().optimizers.names())


def test_one_generation_can_not_be_trained():
    with pytest.raises(ConfigError, match=r"training\.k, the number of generations, is 1"):
        trained(evolve(tiny_writer.setup("any", k=1), options={}))


def test_an_unknown_policy_is_refused_with_those_that_are_installed():
    setup = tiny_writer.setup("any")
    open_policy = plugins.load().policies.make
    setup = evolve(setup, options={"policy": "gpro"}, open_policy=lambda name: open_policy(name, setup))

    with pytest.raises(Exception, match=r"no policy named 'gpro' \(installed: grpo\)"):
        trained(setup)
