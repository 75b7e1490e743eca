"""The same update without any trainer: each answer with its whole prompt, the loss as it is written in the paper."""

from __future__ import annotations

import torch
from child import answer, asked, cpu_s, forget_peak, peak_mb, resident_mb, wall_s
from grpo_setting import CLIP, LEARNING_RATE, MAX_NORM, model, norm_of, tokens


def main() -> None:
    """Update a few times on the same group."""
    writer = model()
    before = {name: weight.detach().clone() for name, weight in writer.named_parameters()}
    adam = torch.optim.AdamW(writer.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    prompt, answers, advantages = tokens()
    value = torch.tensor(advantages)[:, None]  # (K, 1)
    rows = torch.cat([prompt.expand(len(answers), -1), answers], dim=1)  # (K, P + R)
    ready_mb = resident_mb()
    walls, cpus, losses, moved = [], [], [], 0.0
    for _ in range(asked("steps")):
        if len(walls) == 1:
            forget_peak()
        cpu, began = cpu_s(), wall_s()
        kept = answers.shape[1] + 1
        logits = writer(input_ids=rows, use_cache=False, logits_to_keep=kept).logits[:, :-1]  # (K, R, V)
        now = logits.log_softmax(-1).gather(2, answers[:, :, None]).squeeze(2)  # (K, R)
        rho = (now - now.detach()).exp()
        loss = -torch.minimum(rho * value, rho.clamp(1 - CLIP, 1 + CLIP) * value).mean(1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(writer.parameters(), MAX_NORM)
        adam.step()
        adam.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        walls.append(wall_s() - began)
        cpus.append(cpu_s() - cpu)
        moved = moved or norm_of(writer, before)
    answer(wall_s=walls, cpu_s=cpus, peak_mb=peak_mb(), ready_mb=ready_mb, losses=losses, moved=moved)


if __name__ == "__main__":
    main()
