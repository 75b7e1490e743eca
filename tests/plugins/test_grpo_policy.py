from contextlib import contextmanager

import pytest
import torch
from support import tiny_writer

from wer_grpo.options import GrpoOptions
from wer_grpo.sampling import sample
from wer_grpo.surrogate import surrogate
from wer_grpo.writer import open_writer

PROMPTS = [torch.tensor([5, 9, 3, 20, 11, 7, 8]), torch.tensor([4, 4, 30, 6])]


@pytest.fixture
def writer(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    return open_writer(tiny_writer.setup(folder), GrpoOptions(dtype="float64", lora_rank=0))


def draw(policy, prompts=PROMPTS, *, seeds=(1, 2), k=3, max_tokens=9, ends=frozenset({1}), greedy=False):
    return sample(
        policy,
        prompts,
        seeds,
        k=k,
        max_tokens=max_tokens,
        end_tokens=ends,
        greedy=greedy,
        tick=lambda live: None,
    )


@contextmanager
def stock_attention(model):
    ours = model.config._attn_implementation
    model.set_attn_implementation("sdpa")
    yield
    model.set_attn_implementation(ours)


def plain_logprobs(model, prompt, answer, *, temperature):
    """One whole sequence through the model's own forward and stock attention, softmax over the support."""
    with stock_attention(model):
        logits = model(torch.cat([prompt, answer.token_ids])[None]).logits[0]
    steps = logits[len(prompt) - 1 : -1] / temperature
    allowed = torch.full_like(steps, -torch.inf).scatter(1, answer.support, 0.0)
    return (steps + allowed).log_softmax(-1).gather(1, answer.token_ids[:, None]).squeeze(1)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def test_group_pass_gives_the_loss_and_gradient_of_separate_sequences(writer):
    answers = draw(writer.policy)[0]
    old = [answer.logprobs + 0.05 for answer in answers]
    advantage = (0.5, -0.2, -0.3)

    together = writer.policy.score(PROMPTS[0], answers).logprobs
    alone = [plain_logprobs(writer.model, PROMPTS[0], answer, temperature=0.95) for answer in answers]

    losses = [surrogate(found, old, advantage, clip=0.2, ratio="token").loss for found in (together, alone)]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-7)
    packed, plain = (gradients(writer.model, loss) for loss in losses)
    assert packed.keys() == plain.keys()
    for name in packed:
        torch.testing.assert_close(packed[name], plain[name], atol=1e-7, rtol=0)


def test_gradient_checkpointing_changes_no_gradient(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    keeping, computing_twice = (
        open_writer(
            tiny_writer.setup(folder), GrpoOptions(dtype="float64", lora_rank=0, gradient_checkpointing=again)
        )
        for again in (False, True)
    )
    answers = draw(keeping.policy)[0]

    kept, twice = (
        gradients(writer.model, writer.policy.score(PROMPTS[0], answers).logprobs[0].sum())
        for writer in (keeping, computing_twice)
    )

    for name in kept:
        torch.testing.assert_close(twice[name], kept[name], atol=1e-12, rtol=0)


def test_greedy_branches_equal_plain_generation(writer):
    groups = draw(writer.policy, greedy=True)

    for prompt, group in zip(PROMPTS, groups, strict=True):
        with stock_attention(writer.model):
            expected = writer.model.generate(
                prompt[None],
                attention_mask=torch.ones_like(prompt)[None],
                max_new_tokens=9,
                do_sample=False,
            )[0, len(prompt) :]
        for answer in group:
            assert answer.token_ids.tolist() == expected.tolist()


def test_sampled_logprobs_equal_recomputed_ones(writer):
    groups = draw(writer.policy)

    for prompt, group in zip(PROMPTS, groups, strict=True):
        scores = writer.policy.score(prompt, group)
        for answer, found in zip(group, scores.logprobs, strict=True):
            torch.testing.assert_close(found.detach(), answer.logprobs.double(), atol=1e-6, rtol=0)


def test_recalled_answers_have_the_logprobs_and_supports_that_were_sampled(writer):
    group = draw(writer.policy)[0]

    recalled = writer.policy.recall(PROMPTS[0], [answer.token_ids for answer in group])

    for before, after in zip(group, recalled, strict=True):
        assert [set(row) for row in after.support.tolist()] == [set(row) for row in before.support.tolist()]
        torch.testing.assert_close(after.logprobs, before.logprobs.double(), atol=1e-6, rtol=0)


def test_an_answer_does_not_depend_on_what_is_sampled_beside_it(writer):
    together = draw(writer.policy)

    alone = draw(writer.policy, PROMPTS[1:], seeds=(2,))

    assert [each.token_ids.tolist() for each in together[1]] == [each.token_ids.tolist() for each in alone[0]]


def test_other_seeds_give_other_answers(writer):
    one = draw(writer.policy)[0]
    other = draw(writer.policy, seeds=(3, 4))[0]

    assert [each.token_ids.tolist() for each in one] != [each.token_ids.tolist() for each in other]


def test_an_answer_ends_with_the_end_token_or_at_the_limit(writer):
    ends = frozenset(range(1, 12))

    group = draw(writer.policy, ends=ends, k=8)[0]

    for answer in group:
        *before, last = answer.token_ids.tolist()
        assert not ends & set(before)
        assert last in ends or len(answer.token_ids) == 9
    assert any(len(answer.token_ids) < 9 for answer in group)


def test_without_a_limit_every_token_can_be_sampled(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    writer = open_writer(tiny_writer.setup(folder, top_k=0), GrpoOptions(dtype="float64", lora_rank=0))
    answer = draw(writer.policy)[0][0]

    score = writer.policy.score(PROMPTS[0], [answer])

    assert answer.support is None
    torch.testing.assert_close(score.logprobs[0].detach(), answer.logprobs.double(), atol=1e-6, rtol=0)


def test_sampling_frequencies_follow_the_policy(writer):
    group = draw(writer.policy, PROMPTS[:1], seeds=(7,), k=4000, max_tokens=1)[0]
    tokens = torch.stack([answer.token_ids[0] for answer in group])
    expected = {
        int(answer.token_ids[0]): answer.logprobs[0].exp().item()
        for answer in writer.policy.recall(PROMPTS[0], [token[None] for token in tokens.unique()])
    }

    counted = {token: (tokens == token).double().mean().item() for token in expected}

    assert len(expected) == 12
    assert counted == pytest.approx(expected, abs=0.03)
