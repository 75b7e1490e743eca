"""The same update by TRL's `GRPOTrainer`: its own loss on inputs as its own sampling would leave them."""

from __future__ import annotations

import tempfile

import torch
from child import answer, asked, cpu_s, forget_peak, peak_mb, resident_mb, wall_s
from datasets import Dataset
from grpo_setting import CLIP, LEARNING_RATE, MAX_NORM, VOCABULARY, model, norm_of, tokens
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer


def main() -> None:
    """Update a few times on the same group."""
    writer = model()
    before = {name: weight.detach().clone() for name, weight in writer.named_parameters()}
    words = WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w2")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(words), pad_token="w0", eos_token="w1", unk_token="w2"
    )
    k = asked("k")
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=writer,
            processing_class=tokenizer,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=Dataset.from_list([{"prompt": "w3"}] * 8),
            args=GRPOConfig(
                output_dir=folder,
                num_generations=k,
                per_device_train_batch_size=k,
                beta=0.0,
                epsilon=CLIP,
                loss_type="grpo",
                temperature=1.0,
                max_completion_length=asked("response"),
                learning_rate=LEARNING_RATE,
                max_grad_norm=MAX_NORM,
                gradient_checkpointing=False,
                use_cpu=True,
                bf16=False,
                report_to=[],
            ),
        )
        writer = trainer.model
        writer.train()
        adam = torch.optim.AdamW(writer.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
        prompt, answers, advantages = tokens()
        inputs = {
            "prompt_ids": prompt.expand(k, -1).contiguous(),
            "prompt_mask": torch.ones(k, len(prompt), dtype=torch.long),
            "completion_ids": answers,
            "completion_mask": torch.ones_like(answers),
            "advantages": torch.tensor(advantages),
            "num_items_in_batch": torch.tensor(answers.numel()),
        }
        trainer.current_gradient_accumulation_steps = 1
        ready_mb = resident_mb()
        walls, cpus, losses, moved = [], [], [], 0.0
        for _ in range(asked("steps")):
            if len(walls) == 1:
                forget_peak()
            cpu, began = cpu_s(), wall_s()
            loss = trainer.compute_loss(writer, dict(inputs))
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
