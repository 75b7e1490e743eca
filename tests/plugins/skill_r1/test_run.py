"""Skill-R1 on real BFCL prefix tasks in the process sandbox: the loop's own store, rollouts and refinement."""

import pytest
import torch
from support.generations import Scribe
from support.phrase_writer import CLOSE, OPEN, make_phrase_writer
from support.skiller_world import WORKS, opened_run

from wer.loop.refining import refine
from wer.loop.training import train

pytestmark = pytest.mark.slow

SLOWLY = "Be slow about it."


def answer(step):
    return f"{OPEN}{step}{CLOSE}"


async def test_refinement_evolves_a_skill_over_generations_without_a_gradient_step(tmp_path):
    scribe = Scribe(answer(SLOWLY), answer(WORKS))
    settings = {"backend": "skill_r1_inference", "refinement__rounds": 2, "refinement__k": 1}

    async with opened_run(tmp_path / "run", scribe, **settings) as open_:
        [best] = await refine(open_.run, open_.run.optimizer(), open_.scanned, label="refined")

    assert (best.share, WORKS in best.skill.body) == (1.0, True)
    assert "# Generation 0: rewards 0; mean 0" in scribe.requests[0]
    assert "# Generation 0: rewards 0; mean 0" in scribe.requests[1]
    assert "# Generation 1: rewards 0; mean 0" in scribe.requests[1]


def trained_run(folder, writer):
    table = {
        "lora_rank": 0,
        "learning_rate": 2e-3,
        "batch": 3,
        "threads": 1,
        "dtype": "float32",
        "warmup": 0.0,
    }
    return opened_run(
        folder,
        Scribe(""),
        tasks=12,
        writer=str(writer),
        backend="skill_r1",
        training__phases=1,
        training__k=4,
        training__n=1,
        training__temperature=1.0,
        training__max_response_tokens=8,
        optimizer={"grpo": table},
    )


def probability(optimizer):
    """Of the working step, where the policy chooses one."""
    writer = optimizer._policy._writer
    prompt = writer.tokenizer("<|im_start|>", return_tensors="pt")["input_ids"][0]
    ids = writer.tokenizer(answer(WORKS), add_special_tokens=False)["input_ids"]
    [scored] = writer.policy.recall(prompt, [torch.tensor(ids)])
    return float(scored.logprobs[1].exp())


async def test_a_phase_teaches_the_policy_which_revision_pays_and_is_found_again(tmp_path):
    writer = make_phrase_writer(tmp_path / "writer", {WORKS: 1.0, SLOWLY: 1.0})
    async with trained_run(tmp_path / "run", writer) as open_:
        optimizer = open_.run.optimizer()
        states = [task.state(open_.run.config.training) for task in open_.scanned]
        before = probability(optimizer)
        experiences = await train(open_.run, optimizer, states)
        after = probability(optimizer)
        rows = open_.run.store.metrics()
        spent = open_.run.ledger.total
        await optimizer.close()

    (tmp_path / "run" / "checkpoints" / "phase-0" / "done").unlink()
    async with trained_run(tmp_path / "run", writer) as open_:
        resumed = open_.run.optimizer()
        again = await train(open_.run, resumed, states)
        assert open_.run.ledger.total == spent

    assert after > before + 0.1
    assert len(experiences) == 12 * 4
    assert again == experiences
    assert [(stage, step) for stage, step, _ in rows] == [("train/0", step) for step in range(4)]
