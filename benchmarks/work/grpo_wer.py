"""One GRPO update by WER: the group shares its prompt."""

from __future__ import annotations

from child import answer, asked, cpu_s, forget_peak, peak_mb, resident_mb, wall_s
from grpo_setting import CLIP, LEARNING_RATE, MAX_NORM, model, norm_of, tokens
from transformers import AttentionInterface

from wer_grpo.branches import NAME, branch_attention
from wer_grpo.learner import Group, Learner
from wer_grpo.options import GrpoOptions
from wer_grpo.policy import Answer, Policy


def main() -> None:
    """Update a few times on the same group."""
    AttentionInterface.register(NAME, branch_attention)
    writer = model()
    writer.set_attn_implementation(NAME)
    before = {name: weight.detach().clone() for name, weight in writer.named_parameters()}
    options = GrpoOptions(
        epochs=1, learning_rate=LEARNING_RATE, warmup=0.0, clip=CLIP, max_grad_norm=MAX_NORM, lora_rank=0
    )
    learner = Learner(
        Policy(model=writer, temperature=1.0, top_k=0), dict(writer.named_parameters()), options
    )
    prompt, answers, advantages = tokens()
    ready_mb = resident_mb()
    walls, cpus, losses, moved = [], [], [], 0.0
    for _ in range(asked("steps")):
        if len(walls) == 1:
            forget_peak()  # the first one also pays for Adam's moments
        group = Group(
            prompt=prompt,
            answers=tuple(Answer(token_ids=ids, logprobs=ids[:0].float(), support=None) for ids in answers),
            advantages=tuple(advantages),
        )
        cpu, began = cpu_s(), wall_s()
        losses.append(learner.update([group], (0.0, 0.0), lambda: None)["loss"])
        walls.append(wall_s() - began)
        cpus.append(cpu_s() - cpu)
        moved = moved or norm_of(writer, before)
    answer(wall_s=walls, cpu_s=cpus, peak_mb=peak_mb(), ready_mb=ready_mb, losses=losses, moved=moved)


if __name__ == "__main__":
    main()
