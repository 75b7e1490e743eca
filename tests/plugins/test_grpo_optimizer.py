import asyncio

import pytest
import torch
from support import tiny_writer
from support.tiny_writer import PaidByLetters

from wer import plugins
from wer.errors import ConfigError, OptimizerError, PromptTooLong
from wer.measures import MEASURES, OF_SOME
from wer_grpo.optimizer import Grpo


@pytest.fixture
def folder(tmp_path):
    return tiny_writer.make_folder(tmp_path / "writer")


def recording():
    """A place for the figures of steps, and the callback that fills it."""
    rows = {}
    return rows, lambda step, metrics: rows.update({step: metrics})


def weights(optimizer):
    return {name: weight.detach().clone() for name, weight in optimizer._learner.copies.items()}


def assert_same(one, other, *, tolerance=0.0):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], atol=tolerance, rtol=0)


async def test_a_phase_scores_every_candidate_and_reports_each_batch(folder, tmp_path):
    states = tiny_writer.states(5)
    rows, record = recording()
    optimizer = Grpo(tiny_writer.setup(folder, record=record))

    outcome = await optimizer.run_phase(states, PaidByLetters(), tmp_path / "phase")

    assert [each.state.id for each in outcome.experiences] == [state.id for state in states for _ in range(4)]
    assert {step: metrics["states"] for step, metrics in rows.items()} == {0: 2, 1: 2, 2: 1}
    assert all(metrics["steps"] == 2 and metrics["grad_norm"] > 0 for metrics in rows.values())
    assert all(metrics["advantage_share_task"] == pytest.approx(1.0) for metrics in rows.values())
    assert all(
        len(each.candidate.token_ids) == len(each.candidate.logprobs) > 0 for each in outcome.experiences
    )


async def test_an_interrupted_phase_resumes_to_the_weights_of_an_unbroken_one(folder, tmp_path):
    states = tiny_writer.states(6)
    unbroken = Grpo(tiny_writer.setup(folder))
    whole = await unbroken.run_phase(states, PaidByLetters(), tmp_path / "unbroken")
    killed = PaidByLetters(fail_at=3)
    rows, record = recording()
    with pytest.raises(RuntimeError, match="killed"):
        await Grpo(tiny_writer.setup(folder, record=record)).run_phase(states, killed, tmp_path / "broken")
    before = list(rows)
    resumed, again = Grpo(tiny_writer.setup(folder, record=record)), PaidByLetters()
    again.groups = killed.groups

    rest = await resumed.run_phase(states, again, tmp_path / "broken")

    assert_same(weights(resumed), weights(unbroken), tolerance=1e-12)
    assert [each.candidate.id for each in rest.experiences] == [
        each.candidate.id for each in whole.experiences
    ]
    assert (before, list(rows)) == ([0, 1], [0, 1, 2])


async def test_only_the_two_newest_checkpoints_are_kept(folder, tmp_path):
    await Grpo(tiny_writer.setup(folder)).run_phase(
        tiny_writer.states(8), PaidByLetters(), tmp_path / "phase"
    )

    assert sorted(path.name for path in (tmp_path / "phase").iterdir()) == ["step-00003", "step-00004"]


async def test_equal_rewards_make_no_step(folder, tmp_path):
    rows, record = recording()
    optimizer = Grpo(tiny_writer.setup(folder, record=record))
    before = weights(optimizer)

    await optimizer.run_phase(tiny_writer.states(2), PaidByLetters(lambda _: 0.5), tmp_path / "phase")

    assert_same(weights(optimizer), before)
    assert rows[0]["zero_variance"] == 1.0
    assert rows[0]["steps"] == 0.0


async def test_minibatches_make_a_step_each(folder, tmp_path):
    rows, record = recording()
    options = {"minibatch": 1, "epochs": 3, "learning_rate": 0.01}
    optimizer = Grpo(tiny_writer.setup(folder, options=options, record=record))

    await optimizer.run_phase(tiny_writer.states(2), PaidByLetters(), tmp_path / "phase")

    assert rows[0]["steps"] == 6
    assert rows[0]["clip_fraction"] > 0


async def test_every_documented_figure_of_a_step_is_recorded(folder, tmp_path):
    rows, record = recording()

    await Grpo(tiny_writer.setup(folder, record=record)).run_phase(
        tiny_writer.states(2), PaidByLetters(), tmp_path / "phase"
    )

    of_the_loop = {"rollouts", "rollouts_per_s"}
    assert rows[0].keys() == MEASURES.keys() - of_the_loop - OF_SOME.keys()


async def test_a_loss_that_is_not_finite_stops_before_the_weights_change(folder, tmp_path):
    optimizer = Grpo(tiny_writer.setup(folder))
    evaluate = PaidByLetters(fail_at=2)
    with pytest.raises(RuntimeError, match="killed"):
        await optimizer.run_phase(tiny_writer.states(4), evaluate, tmp_path / "phase")
    before = weights(optimizer)
    poisoned = next(iter(optimizer._writer.trainable().values()))
    poisoned.register_hook(lambda gradient: gradient * torch.nan)

    with pytest.raises(OptimizerError, match=r"untouched\. Last checkpoint: .*step-00001"):
        await optimizer.run_phase(tiny_writer.states(4), evaluate, tmp_path / "phase")

    assert_same(weights(optimizer), before)


async def test_a_prompt_that_does_not_fit_is_refused_with_its_task_and_length(folder, tmp_path):
    optimizer = Grpo(tiny_writer.setup(folder, max_prompt_tokens=5))

    with pytest.raises(PromptTooLong, match=r"task 't0' has \d+ tokens and the limit is 5"):
        await optimizer.run_phase(tiny_writer.states(1), PaidByLetters(), tmp_path / "phase")


def test_a_group_of_one_is_refused(folder):
    with pytest.raises(ConfigError, match=r"training\.k is 1"):
        Grpo(tiny_writer.setup(folder, k=1))


def test_an_unknown_option_is_refused(folder):
    with pytest.raises(ConfigError, match=r"optimizer\.grpo"):
        Grpo(tiny_writer.setup(folder, options={"gamma": 0.1}))


async def test_a_writer_without_weights_is_refused(tmp_path):
    optimizer = Grpo(tiny_writer.setup(tmp_path / "nothing.gguf"))

    with pytest.raises(ConfigError, match="no file"):
        await optimizer.propose(tiny_writer.states(1), 2, 0)


async def test_proposals_repeat_with_their_seed_and_change_with_another(folder):
    optimizer = Grpo(tiny_writer.setup(folder))
    states = tiny_writer.states(3)

    one, again, other = [await optimizer.propose(states, 2, seed) for seed in (1, 1, 2)]

    assert one == again
    assert one != other
    assert [len(group) for group in one] == [2, 2, 2]


@pytest.mark.parametrize("options", [{"lora_rank": 0}, {"lora_rank": 4}])
async def test_a_saved_policy_writes_the_same_after_loading(folder, tmp_path, options):
    states = tiny_writer.states(4)
    trained = Grpo(tiny_writer.setup(folder, options={**options, "learning_rate": 0.02}))
    untrained = await trained.propose(states, 2, 5)
    await trained.run_phase(states, PaidByLetters(), tmp_path / "phase")
    trained.save(tmp_path / "policy")
    expected = await trained.propose(states, 2, 5)
    loaded = Grpo(tiny_writer.setup(folder, options=options))

    loaded.load(tmp_path / "policy")

    assert await loaded.propose(states, 2, 5) == expected != untrained


async def test_the_merged_folder_is_a_writer(folder, tmp_path):
    trained = Grpo(tiny_writer.setup(folder, options={"lora_rank": 4, "learning_rate": 0.02}))
    await trained.run_phase(tiny_writer.states(4), PaidByLetters(), tmp_path / "phase")
    trained.save(tmp_path / "policy")

    merged = Grpo(tiny_writer.setup(tmp_path / "policy" / "merged", temperature=0.0))

    trained_greedy = Grpo(tiny_writer.setup(folder, options={"lora_rank": 4}, temperature=0.0))
    trained_greedy.load(tmp_path / "policy")
    states = tiny_writer.states(2)
    ours = await trained_greedy.propose(states, 1, 0)
    theirs = await merged.propose(states, 1, 0)
    assert [group[0].text[0] for group in ours] == [group[0].text[0] for group in theirs]


async def test_a_policy_of_other_shape_is_not_loaded(folder, tmp_path):
    Grpo(tiny_writer.setup(folder, options={"lora_rank": 4})).save(tmp_path / "policy")

    with pytest.raises(OptimizerError, match="lora_rank"):
        Grpo(tiny_writer.setup(folder, options={"lora_rank": 2})).load(tmp_path / "policy")


async def test_cancelling_stops_the_work_and_leaves_a_usable_optimizer(folder):
    optimizer = Grpo(tiny_writer.setup(folder, max_response_tokens=90))
    await optimizer.propose(tiny_writer.states(1), 2, 0)
    task = asyncio.create_task(optimizer.propose(tiny_writer.states(40), 8, 0))
    await asyncio.sleep(0.1)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await optimizer.propose(tiny_writer.states(1), 2, 0)) == 1


def test_grpo_is_offered_as_a_backend():
    found = plugins.load()

    found.optimizers.check("grpo")
