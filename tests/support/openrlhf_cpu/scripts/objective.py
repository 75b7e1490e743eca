"""Computes advantages and losses with OpenRLHF's own code.

    python objective.py FILE

The file is JSON: ``groups`` of rewards and, if wanted, one batch of ``new`` and ``old`` log-probabilities
with its ``advantages`` and ``clip``.

Prints, as JSON, the advantages of each estimator, and the loss with its gradient, a group being one batch.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from openrlhf.models.loss import PolicyLoss
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker


def advantages(groups, estimator):
    """Advantages of candidates of one token each, in the order of the groups."""
    k = len(groups[0])
    reward = SimpleNamespace(
        clip_range=(-10, 10),
        overlong_buffer_len=None,
        overlong_penalty_factor=1,
        stop_properly_penalty_coef=None,
    )
    advantage = SimpleNamespace(estimator=estimator, gamma=1.0, lambd=1.0, no_std_norm=False)
    args = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=k),
        algo=SimpleNamespace(advantage=advantage),
        reward=reward,
    )
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.strategy = SimpleNamespace(args=args)
    maker.args = args
    maker.advantage_estimator = estimator
    maker.kl_ctl = SimpleNamespace(value=0.0)
    flat = [value for group in groups for value in group]
    experiences = [
        Experience(
            index=[index],
            rewards=torch.tensor([value]),
            action_mask=torch.ones(1, 1),
            kl=torch.zeros(1, 1),
            info={},
        )
        for index, value in enumerate(flat)
    ]
    found = [each.advantages.item() for each in maker.compute_advantages_and_returns(experiences)]
    return [found[start : start + k] for start in range(0, len(found), k)]


def loss(new, old, advantage, clip):
    """The loss of one batch with a mean over tokens and then candidates, padded as the trainer pads."""
    length = max(map(len, new))

    def padded(rows):
        return torch.tensor([[*row, *[0.0] * (length - len(row))] for row in rows], dtype=torch.float64)

    mask = padded([[1.0] * len(row) for row in new])
    now = padded(new).requires_grad_()
    paid = torch.tensor(advantage, dtype=torch.float64)[:, None].expand(-1, length) * mask
    policy = PolicyLoss(clip_eps_low=clip, clip_eps_high=clip, token_level_loss=False)
    value, clipped, *_ = policy(now, padded(old), paid, action_mask=mask)
    value.backward()
    gradient = [row[: len(words)].tolist() for row, words in zip(now.grad, new, strict=True)]
    return {"loss": value.item(), "clipped": clipped.item(), "gradient": gradient}


asked = json.loads(Path(sys.argv[1]).read_text("utf-8"))
answer = {name: advantages(asked["groups"], name) for name in ("dr_grpo", "group_norm")}
if "new" in asked:
    answer["surrogate"] = loss(asked["new"], asked["old"], asked["advantages"], asked["clip"])
print(json.dumps(answer))
