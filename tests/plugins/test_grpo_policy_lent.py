"""The grpo backend's weights in the hands of another optimizer."""

import pytest
import torch
from support import tiny_writer

from wer import plugins
from wer.contracts import Lesson
from wer.errors import BudgetExhausted, ConfigError, OptimizerError, PromptTooLong
from wer.records import Message
from wer_grpo.learner import Group, Learner
from wer_grpo.lent import Lent

REQUESTS = [(Message(role="user", content=text),) for text in ("abc", "kkk", "xyzx")]


@pytest.fixture
def folder(tmp_path):
    return tiny_writer.make_folder(tmp_path / "writer")


def lessons(policy, written):
    return [
        Lesson(request=request, token_ids=group[0].token_ids, advantages=(0.5, -0.25 * place))
        for place, (request, group) in enumerate(zip(REQUESTS, written, strict=True))
    ]


async def trained(folder, **options):
    policy = Lent(tiny_writer.setup(folder, options={"learning_rate": 0.02, **options}))
    written = await policy.sample(REQUESTS, [1, 2, 3], 1)
    return policy, await policy.update(lessons(policy, written), (0.0, 0.5))


async def test_it_writes_k_answers_a_request_and_charges_each_prompt_once(folder):
    charged = []
    policy = Lent(tiny_writer.setup(folder, charge=charged.append))

    groups = await policy.sample(REQUESTS, [1, 2, 3], 4)

    assert [len(group) for group in groups] == [4, 4, 4]
    assert all(len(each.token_ids) == len(each.logprobs) > 0 for group in groups for each in group)
    assert sum(usage.calls for usage in charged) == 12
    assert sum(usage.prompt_tokens for usage in charged) == 3 + 3 + 4


async def test_what_is_over_the_limit_is_counted_and_never_sampled(folder):
    policy = Lent(tiny_writer.setup(folder, max_prompt_tokens=3))

    assert await policy.excess(REQUESTS) == [0, 0, 1]
    with pytest.raises(PromptTooLong, match="limit of 3"):
        await policy.sample(REQUESTS, [1, 2, 3], 1)


async def test_a_spent_budget_ends_it_before_anything_is_sampled(folder):
    def spent():
        raise BudgetExhausted("no more")

    with pytest.raises(BudgetExhausted):
        await Lent(tiny_writer.setup(folder, check=spent)).sample(REQUESTS, [1, 2, 3], 1)


@pytest.mark.parametrize("rank", [0, 4])
async def test_the_reference_is_the_writer_as_it_was_given(folder, rank):
    policy, figures = await trained(folder, kl=0.1, lora_rank=rank, epochs=4)
    given = Lent(tiny_writer.setup(folder))
    prompt = policy._writer.encode(REQUESTS[0])
    answers = given._writer.policy.recall(prompt, [torch.tensor([3, 4, 5, 1])])
    group = Group(prompt=prompt, answers=answers, advantages=(1.0,))

    policy._learner._refer([group], lambda: None)

    [expected] = given._writer.policy.score(prompt, answers).logprobs
    [now] = policy._writer.policy.score(prompt, answers).logprobs
    torch.testing.assert_close(group.reference[0], expected, atol=1e-12, rtol=0)
    assert not torch.allclose(now, expected)
    assert figures["kl_reference"] > 0


async def test_a_penalty_keeps_the_policy_nearer_to_its_reference(folder):
    _, free = await trained(folder, kl=1e-9, epochs=8)
    _, held = await trained(folder, kl=1.0, epochs=8)

    assert held["kl_reference"] < free["kl_reference"]


async def test_without_a_penalty_no_reference_is_kept(folder):
    policy, figures = await trained(folder)

    assert policy._learner._given == {}
    assert "kl_reference" not in figures


async def test_several_terms_of_one_answer_are_the_same_as_that_many_equal_answers(folder):
    def gradients(answers, advantages):
        policy = Lent(tiny_writer.setup(folder))
        prompt = policy._writer.encode(REQUESTS[0])
        tokens = [torch.tensor([3, 4, 5, 1])] * answers
        group = Group(
            prompt=prompt,
            answers=policy._writer.policy.recall(prompt, tokens),
            advantages=advantages,
            old=tuple(torch.full((4,), -3.6, dtype=torch.float64) for _ in tokens),
        )
        learner = Learner(policy._writer.policy, policy._writer.trainable(), policy._options)
        list(learner._backward([group], 1, lambda: None))
        return {name: weight.grad for name, weight in policy._writer.trainable().items()}

    one, three = gradients(1, (0.75, -0.5, 0.5)), gradients(3, (0.75, -0.5, 0.5))

    for name, gradient in one.items():
        torch.testing.assert_close(gradient, three[name], atol=1e-6, rtol=1e-4)  # norms are in float32


async def test_an_answer_without_tokens_can_not_teach(folder):
    lesson = Lesson(request=REQUESTS[0], token_ids=(), advantages=(1.0,))

    with pytest.raises(OptimizerError, match="no token ids"):
        await Lent(tiny_writer.setup(folder)).update([lesson], (0.0, 1.0))


async def test_training_at_temperature_0_is_refused_before_anything_is_sampled(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"training\.temperature is 0"):
        await Lent(tiny_writer.setup(folder, temperature=0.0)).resume(tmp_path / "phase")


def test_grpo_is_offered_as_a_policy():
    plugins.load().policies.check("grpo")
