"""Skill-R1 trained: the policy of the grpo backend learns from what its generations earned."""

import pytest
import torch
from attrs import evolve
from support import tiny_writer
from support.generations import BAD, GOOD, PaidBySkill, document, lending, rollout

from wer import plugins
from wer.conformance import Settings, check_part
from wer.measures import MEASURES
from wer.writing import parse_candidate
from wer_skill_r1.chain import Chain
from wer_skill_r1.optimizer import SkillR1, trained

WORDS = (document(BAD), document(GOOD))
MEDIUM = "Act slowly."


@pytest.fixture
def folder(tmp_path):
    return tiny_writer.make_folder(tmp_path / "writer", words=WORDS)


def made(folder, *, options=None, inter_weight=1.0, **changes):
    setup = tiny_writer.setup(folder, max_response_tokens=1, **{"k": 3, "top_k": 0, **changes})
    lent = lending(setup, {**tiny_writer.OPTIONS, **(options or {})})
    return trained(evolve(lent, options={"inter_weight": inter_weight}))


def token(step):
    return len(tiny_writer.VOCABULARY) + WORDS.index(document(step))


def scripted(state, *steps):
    """An evaluation in whose store a chain of these skills was already written."""
    evaluate, chain = PaidBySkill(), Chain.begin(state)
    for step in steps:
        candidate = parse_candidate(
            document(step), state=chain.state, index=0, token_ids=(token(step),), logprobs=(-1.0,)
        )
        evaluate.groups[chain.state.id] = [candidate]
        chain = chain.after(evaluate._experience(chain.state, candidate))
    return evaluate, chain


def probability(optimizer, request, step):
    writer = optimizer._policy._writer
    prompt = writer.encode(request)
    [answer] = writer.policy.recall(prompt, [torch.tensor([token(step)])])
    return float(answer.logprobs.exp())


def start():
    [state] = tiny_writer.states(1)
    return evolve(state, evidence=(rollout(state, state.skill, 0, 0.0),))


async def test_a_trained_step_makes_the_better_skill_more_probable(folder, tmp_path):
    state = start()
    evaluate, chain = scripted(state, BAD, GOOD)
    optimizer = made(folder, k=2)
    before = probability(optimizer, chain.requests[1], GOOD)

    await optimizer.run_phase([state], evaluate, tmp_path / "phase")

    assert probability(optimizer, chain.requests[1], GOOD) > before


async def test_a_trained_step_makes_a_skill_that_fell_back_less_probable(folder, tmp_path):
    state = start()
    evaluate, chain = scripted(state, GOOD, BAD)
    optimizer = made(folder, k=2)
    before = probability(optimizer, chain.requests[1], BAD)

    await optimizer.run_phase([state], evaluate, tmp_path / "phase")

    assert probability(optimizer, chain.requests[1], BAD) < before


async def test_without_the_inter_term_equal_rollouts_teach_nothing(folder, tmp_path):
    state, rows = start(), {}
    evaluate, _ = scripted(state, BAD, GOOD)
    optimizer = made(folder, k=2, inter_weight=0.0, record=lambda step, row: rows.update({step: row}))

    await optimizer.run_phase([state], evaluate, tmp_path / "phase")

    assert (rows[0]["steps"], rows[0]["improvement"]) == (0.0, 1.0)


async def test_a_step_is_described_by_documented_figures(folder, tmp_path):
    rows = {}
    optimizer = made(folder, options={"kl": 0.1}, record=lambda step, row: rows.update({step: row}))

    await optimizer.run_phase(tiny_writer.states(5), PaidBySkill(), tmp_path / "phase")

    assert {step: row["states"] for step, row in rows.items()} == {0: 2, 1: 2, 2: 1}
    assert rows[0].keys() <= MEASURES.keys()
    assert {"improvement", "kl_reference", "update_s", "generation_s"} <= rows[0].keys()


def weights(optimizer):
    return optimizer._policy._learner.copies


async def test_an_interrupted_phase_samples_nothing_twice_and_ends_at_the_same_weights(folder, tmp_path):
    states = tiny_writer.states(6)
    charged = []
    unbroken = made(folder, charge=lambda usage: charged.append(usage.calls))
    whole = await unbroken.run_phase(states, PaidBySkill(by_parity), tmp_path / "unbroken")
    paid = sum(charged)
    charged.clear()
    evaluate = PaidBySkill(by_parity, fail_at=5)
    with pytest.raises(RuntimeError, match="killed"):
        await made(folder, charge=lambda usage: charged.append(usage.calls)).run_phase(
            states, evaluate, tmp_path / "broken"
        )
    resumed = made(folder, charge=lambda usage: charged.append(usage.calls))

    rest = await resumed.run_phase(states, evaluate, tmp_path / "broken")

    assert paid == sum(charged) == 6 * 3
    assert [each.candidate.id for each in rest.experiences] == [
        each.candidate.id for each in whole.experiences
    ]
    for name, weight in weights(unbroken).items():
        torch.testing.assert_close(weights(resumed)[name], weight, atol=1e-12, rtol=0)


def by_parity(skill):
    return (1.0, 0.0) if len(skill.body) % 2 else (1.0, 1.0)


async def test_what_was_saved_is_loaded(folder, tmp_path):
    states = tiny_writer.states(2)
    evaluate, _ = scripted(start(), BAD, GOOD)
    optimizer = made(folder, k=2, options={"learning_rate": 0.02})
    await optimizer.run_phase([start()], evaluate, tmp_path / "phase")
    expected = await optimizer.propose(states, 4, 1)
    optimizer.save(tmp_path / "policy")
    other = made(folder, k=2)

    other.load(tmp_path / "policy")

    assert await other.propose(states, 4, 1) == expected


def test_it_learns_and_its_twin_does_not(folder):
    optimizer = made(folder)

    assert isinstance(optimizer, SkillR1)
    assert optimizer.learns


@pytest.mark.slow
@pytest.mark.parametrize("name", ["skill_r1", "skill_r1_inference"])
async def test_it_passes_every_check_of_an_optimizer(tmp_path, name):
    trains = name == "skill_r1"
    settings = Settings(
        model=str(tiny_writer.make_folder(tmp_path / "writer", words=WORDS)) if trains else "",
        config={"optimizer": {"grpo": {**tiny_writer.OPTIONS, "learning_rate": 0.05}}},
    )

    listed = await check_part("optimizer", name, plugins.load(), settings)

    assert {finding.status for finding in listed} == {"ok"}, listed
