import math

import pytest
import torch

from wer_grpo.schedule import learning_rate
from wer_grpo.surrogate import advantages, divergence, surrogate

NEW = [[-1.0, -0.5, -2.0], [-0.7, -0.1], [-3.0, -0.2, -0.4, -1.5]]
OLD = [[-1.3, -0.5, -1.2], [-0.6, -0.4], [-2.9, -0.9, -0.4, -1.4]]
REWARDS = [0.9, 0.2, 0.4]


def tensors(rows):
    return [torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows]


def by_hand(new, old, advantage, *, clip, sequence):
    """Eq. 6 in plain floating-point arithmetic, one candidate and token at a time."""
    total = 0.0
    for now, before, value in zip(new, old, advantage, strict=True):
        changes = [a - b for a, b in zip(now, before, strict=True)]
        ratios = [math.exp(change) for change in ([sum(changes)] if sequence else changes)]
        terms = [min(rho * value, min(max(rho, 1 - clip), 1 + clip) * value) for rho in ratios]
        total += sum(terms) / len(terms)
    return -total / len(new)


def openrlhf_style(new, old, advantage, *, clip):
    """The policy loss of OpenRLHF 0.11.2 (PolicyLoss, token_level_loss off), written over padded rows."""
    width = max(map(len, new))
    mask = torch.tensor([[1.0] * len(row) + [0.0] * (width - len(row)) for row in new], dtype=torch.float64)
    padded = [
        torch.tensor([row + [0.0] * (width - len(row)) for row in rows], dtype=torch.float64)
        for rows in (new, old)
    ]
    ratio = (padded[0] - padded[1]).clamp(min=-20.0, max=20.0).exp()
    column = torch.tensor(advantage, dtype=torch.float64)[:, None]
    loss = -torch.min(ratio * column, ratio.clamp(1 - clip, 1 + clip) * column)
    return float(((loss * mask).sum(-1) / mask.sum(-1)).mean())


def test_advantages_are_deviations_from_the_mean_of_the_group():
    found = advantages([1.0, 0.0, 0.5, 0.5], scaled=False)

    assert found == pytest.approx((0.5, -0.5, 0.0, 0.0))


def test_scaled_advantages_agree_with_trl_up_to_its_small_constant():
    rewards = torch.tensor(REWARDS)
    trl = (rewards - rewards.mean()) / (rewards.std() + 1e-4)

    found = advantages(REWARDS, scaled=True)

    assert found == pytest.approx(trl.tolist(), rel=1e-3)


@pytest.mark.parametrize("scaled", [False, True])
def test_equal_rewards_give_advantages_of_exactly_zero(scaled):
    assert advantages([0.1 + 0.2] * 4, scaled=scaled) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_loss_equals_equation_six_computed_by_hand(ratio):
    advantage = advantages(REWARDS, scaled=False)

    found = surrogate(tensors(NEW), tensors(OLD), advantage, clip=0.2, ratio=ratio)

    expected = by_hand(NEW, OLD, advantage, clip=0.2, sequence=ratio == "sequence")
    assert found.loss.item() == pytest.approx(expected, abs=1e-12)


def test_token_level_loss_equals_the_formula_of_openrlhf():
    advantage = advantages(REWARDS, scaled=False)

    found = surrogate(tensors(NEW), tensors(OLD), advantage, clip=0.2, ratio="token")

    assert found.loss.item() == pytest.approx(openrlhf_style(NEW, OLD, advantage, clip=0.2), abs=1e-12)


def test_a_clipped_token_has_no_gradient_and_is_counted():
    new, old = tensors([[math.log(1.5), 0.0]]), tensors([[0.0, 0.0]])

    found = surrogate(new, old, [1.0], clip=0.2, ratio="token")
    found.loss.backward()

    assert new[0].grad.tolist() == [0.0, -0.5]
    assert found.clipped == 0.5


def test_a_bad_candidate_that_became_likelier_is_not_clipped():
    new, old = tensors([[math.log(1.5)]]), tensors([[0.0]])

    found = surrogate(new, old, [-1.0], clip=0.2, ratio="token")

    assert found.loss.item() == pytest.approx(1.5)
    assert found.clipped == 0.0


def test_learning_rate_rises_to_its_peak_and_falls_to_zero():
    rates = [learning_rate(share, peak=2.0, warmup=0.1) for share in (0.05, 0.1, 0.55, 1.0)]

    assert rates == pytest.approx([1.0, 2.0, 1.0, 0.0])


def k3(now, there):
    """DeepSeekMath's estimate, one token at a time."""
    changes = [b - a for a, b in zip(now, there, strict=True)]
    return sum(math.exp(change) - change - 1 for change in changes) / len(changes)


def test_the_penalty_is_the_mean_divergence_from_the_reference_to_float_precision():
    reference = [[-0.9, -0.6, -2.5], [-0.7, -0.3], [-2.0, -0.2, -0.5, -1.0]]
    advantage = advantages(REWARDS, scaled=False)
    plain = by_hand(NEW, OLD, advantage, clip=0.2, sequence=False)
    penalty = sum(k3(now, there) for now, there in zip(NEW, reference, strict=True)) / 3

    found = surrogate(
        tensors(NEW), tensors(OLD), advantage, clip=0.2, ratio="token", kl=0.3, reference=tensors(reference)
    )

    assert found.divergence == pytest.approx(penalty, rel=1e-14)
    assert float(found.loss.detach()) == pytest.approx(plain + 0.3 * penalty, rel=1e-14)


def test_at_the_reference_the_penalty_and_its_gradient_are_zero():
    new = tensors(NEW)

    penalty = sum(divergence(now, now.detach()) for now in new)
    penalty.backward()

    assert float(penalty.detach()) == 0.0
    assert all(not now.grad.any() for now in new)
