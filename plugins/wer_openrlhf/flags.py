"""Which flags of OpenRLHF 0.11.2 a user may add to those that WER derives, and why others are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wer.tables import nearest

ALLOWED = frozenset(
    {
        "--actor.adam.betas",
        "--actor.adam.eps",
        "--actor.aux_loss_coef",
        "--actor.dual_clip",
        "--actor.gradient_checkpointing_reentrant",
        "--actor.muon.lr",
        "--actor.muon.momentum",
        "--actor.optim",
        "--algo.advantage.is_correction_gating",
        "--algo.advantage.is_correction_mode",
        "--algo.advantage.is_correction_threshold",
        "--data.dataloader_num_workers",
        "--data.disable_fast_tokenizer",
        "--ds.deepcompile",
        "--ds.experts_implementation",
        "--ds.grad_accum_dtype",
        "--ds.overlap_comm",
        "--ds.use_liger_kernel",
        "--ds.zpg",
        "--logger.logging_steps",
        "--logger.wandb.group",
        "--logger.wandb.org",
        "--logger.wandb.project",
        "--train.full_determinism_enable",
        "--vllm.sync_with_ray",
    }
)
"""Flags that change how fast, on what or with which optimizer OpenRLHF trains, and nothing that WER relies on."""

_WER_REWARDS = "WER's agent gives the reward, and another one would change what is learnt without a trace"
_NO_KL = "GRPO as WER trains it has no KL term and no reference model"
_NO_CRITIC = "GRPO has no critic"
_ASYNC = "asynchronous training cannot be resumed from its checkpoints without losing prompts"
_ADAPTERS = "with adapters OpenRLHF 0.11.2 fails at its first weight sync, so all weights are trained"
_PROMPTS = "WER renders the prompts and counts on each of them being used once"
_ARITHMETIC = "it changes the batch arithmetic that is checked before the launch"
_TEXT = "the writer reads and writes text alone"
_IMAGES = "--data.image_key --data.max_images_per_prompt --actor.freeze_visual_encoder"

REFUSED: dict[str, str] = {
    "--reward.clip_range": (
        "OpenRLHF clips after it has subtracted the group's mean, so that a range of 0 to 1 deletes every "
        "negative advantage"
    ),
    "--reward.": _WER_REWARDS,
    "--critic.": _NO_CRITIC,
    "--ref.": _NO_KL,
    "--algo.kl.": _NO_KL,
    "--algo.advantage.no_std_norm": "the estimators that WER uses ignore it",
    "--algo.advantage.gamma": "GRPO pays a whole answer at once",
    "--algo.advantage.lambd": _NO_CRITIC,
    "--algo.dynamic_filtering": (
        "it throws away groups that WER has paid for, and takes other prompts in their place"
    ),
    "--train.async": _ASYNC,
    "--train.partial_rollout_enable": _ASYNC,
    "--rollout.vllm_generate_batch_size": _ASYNC,
    "--ds.lora.": _ADAPTERS,
    "--ds.load_in_4bit": _ADAPTERS,
    "--data.apply_chat_template": "WER renders the chat itself, and text such as <image> would become content",
    "--data.input_template": _PROMPTS,
    "--data.max_samples": _PROMPTS,
    "--data.prompt_": _PROMPTS,
    **dict.fromkeys(_IMAGES.split(), _TEXT),
    "--ckpt.disable_ds": "the next phase goes on from DeepSpeed's checkpoint",
    "--ckpt.save_hf": "its exports are never removed; WER keeps one a phase",
    "--ckpt.max_mem": "it may remove the only checkpoint there is",
    "--ds.use_universal_ckpt": "WER carries ordinary checkpoints from phase to phase",
    "--train.enable_ema": "what is written at the end would be averaged weights, and not the policy that was paid",
    "--train.ema_beta": "it belongs to --train.enable_ema, which is refused",
    "--train.colocate_": "optimizer.openrlhf.colocate decides who shares GPUs, and there is no other model",
    "--train.dynamic_batch_enable": _ARITHMETIC,
    "--train.max_tokens_per_gpu": _ARITHMETIC,
    "--rollout.max_tokens_per_gpu": _ARITHMETIC,
    "--ds.ring_attn": _ARITHMETIC,
    "--ds.tensor_parallel_size": _ARITHMETIC,
    "--ds.value_head_prefix": _NO_CRITIC,
    "--actor.eps_clip_low_high": "optimizer.openrlhf.clip is the one epsilon of Eq. 6, and is what WER reports",
    "--actor.policy_loss_type": "another surrogate than Eq. 6 would be trained",
    "--actor.muon.n": "DeepSpeed ignores it",
    "--eval.": "WER evaluates: on the test split, once, at the end",
    "--logger.wandb.key": "every user of the machine can read a command line; set WANDB_API_KEY instead",
    "--local_rank": "Ray numbers the processes",
    "--use_ms": "it patches the hub's client; download the model first",
    "-h": "it prints the help and trains nothing",
    "--help": "it prints the help and trains nothing",
}
"""Why a flag may not be added, by its beginning; the longest beginning that fits counts."""


_FLAG = re.compile(r"--|-[A-Za-z]")
_BATCH = "optimizer.openrlhf.batch and minibatch"
_LAUNCH = "each launch"

DERIVED: dict[str, str] = {
    "--actor.adam.lr": "optimizer.openrlhf.learning_rate",
    "--actor.adam.weight_decay": "optimizer.openrlhf.weight_decay",
    "--actor.entropy_coef": "the objective, which has no entropy bonus",
    "--actor.eps_clip": "optimizer.openrlhf.clip",
    "--actor.gradient_checkpointing_enable": "optimizer.openrlhf.gradient_checkpointing",
    "--actor.loss_agg_mode": "optimizer.openrlhf.sequence_mean",
    "--actor.lr_scheduler": "the schedule",
    "--actor.lr_warmup_ratio": "optimizer.openrlhf.warmup",
    "--actor.max_norm": "optimizer.openrlhf.max_grad_norm",
    "--actor.min_lr_ratio": "the schedule",
    "--actor.model_name_or_path": "--writer",
    "--actor.num_gpus_per_node": "optimizer.openrlhf.gpus_per_node",
    "--actor.num_nodes": "optimizer.openrlhf.nodes",
    "--algo.advantage.estimator": "optimizer.openrlhf.scale_advantages",
    "--algo.advantage.is_correction_level": "optimizer.openrlhf.rollout_correction",
    "--algo.kl.init_coef": "the objective, which has no KL term",
    "--ckpt.best_metric_key": _LAUNCH,
    "--ckpt.load_enable": _LAUNCH,
    "--ckpt.max_num": _LAUNCH,
    "--ckpt.output_dir": _LAUNCH,
    "--ckpt.path": _LAUNCH,
    "--ckpt.save_steps": "optimizer.openrlhf.checkpoint_every",
    "--data.input_key": _LAUNCH,
    "--data.label_key": _LAUNCH,
    "--data.max_len": "training.max_prompt_tokens and max_response_tokens",
    "--data.prompt_dataset": _LAUNCH,
    "--ds.adam_offload": "optimizer.openrlhf.adam_offload",
    "--ds.attn_implementation": "optimizer.openrlhf.attention",
    "--ds.enable_sleep": "optimizer.openrlhf.colocate",
    "--ds.packing_samples": "optimizer.openrlhf.packing",
    "--ds.param_dtype": "the engines, which write in bfloat16",
    "--ds.zero_stage": "optimizer.openrlhf.zero_stage",
    "--logger.tensorboard_dir": "optimizer.openrlhf.tensorboard",
    "--logger.wandb.run_name": _LAUNCH,
    "--rollout.batch_size": _BATCH,
    "--rollout.max_new_tokens": "training.max_response_tokens",
    "--rollout.micro_batch_size": "optimizer.openrlhf.micro_batch",
    "--rollout.n_samples_per_prompt": "training.k",
    "--rollout.temperature": "training.temperature",
    "--rollout.top_p": "the policy, which is trained at the distribution that it is sampled from",
    "--train.agent_func_path": _LAUNCH,
    "--train.batch_size": _BATCH,
    "--train.colocate_all": "optimizer.openrlhf.colocate",
    "--train.max_epochs": "optimizer.openrlhf.epochs",
    "--train.micro_batch_size": "optimizer.openrlhf.micro_batch",
    "--train.num_episodes": _LAUNCH,
    "--train.seed": "--seed",
    "--vllm.enable_prefix_caching": _LAUNCH,
    "--vllm.enable_sleep": "optimizer.openrlhf.colocate",
    "--vllm.enforce_eager": "optimizer.openrlhf.enforce_eager",
    "--vllm.gpu_memory_utilization": "optimizer.openrlhf.gpu_memory",
    "--vllm.num_engines": "optimizer.openrlhf.engines",
    "--vllm.sync_backend": "optimizer.openrlhf.sync_backend",
    "--vllm.tensor_parallel_size": "optimizer.openrlhf.tensor_parallel",
}
"""What decides each flag that WER gives itself."""


def problems(extra: Sequence[str]) -> list[str]:
    """Say what is wrong with ``optimizer.openrlhf.extra``, a line for each flag that may not be there.

    argparse would take any unambiguous abbreviation; here names are exact.
    """
    found = []
    if extra and not extra[0].startswith("-"):
        found.append(f"optimizer.openrlhf.extra begins with {extra[0]!r}: a flag comes before its values.")
    for word in extra:
        name = word.partition("=")[0]
        if _FLAG.match(name) and (why := _objection(name)):
            found.append(f"optimizer.openrlhf.extra has {name}: {why}.")
    return found


def _objection(name: str) -> str:
    if name in ALLOWED:
        return ""
    if name in DERIVED:
        return f"it is decided by {DERIVED[name]}"
    beginnings = [beginning for beginning in REFUSED if name.startswith(beginning)]
    if beginnings:
        return REFUSED[max(beginnings, key=len)]
    return f"OpenRLHF 0.11.2 has no flag of exactly this name{nearest(name, ALLOWED).rstrip('?')}"
