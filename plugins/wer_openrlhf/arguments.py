"""The command line of OpenRLHF 0.11.2's trainer, every flag of it derived from WER's configuration."""

from __future__ import annotations

from pathlib import Path

from wer.contracts import OptimizerSetup
from wer_openrlhf.options import OpenRlhfOptions
from wer_openrlhf.schedule import Piece, piece

CHECKPOINTS_KEPT = 2


def argv(
    setup: OptimizerSetup,
    options: OpenRlhfOptions,
    *,
    model: str,
    dataset: Path,
    states: int,
    batch: int,
    agent: Path,
    checkpoints: Path,
    output: Path,
    share: tuple[float, float],
    logs: Path | None = None,
) -> list[str]:
    """Give the arguments of one launch, which is one phase.

    Args:
        model: Folder of the policy's weights at the beginning of the run.
        dataset: What `wer_openrlhf.dataset.write` wrote.
        states: Prompts in it, a multiple of `batch`.
        batch: Prompts that are sampled, executed and learnt from together.
        agent: The file that OpenRLHF loads `AgentExecutor` from.
        checkpoints: Gone on from when there is one.
        output: Where the trained policy goes, as a Hugging Face folder.
        share: Where the phase begins and ends, as shares of the whole training.
        logs: TensorBoard's folder; None writes no curves.
    """
    step = min(options.minibatch or batch, batch)
    curve = _curve(options, share, updates=states // batch * (batch // step) * options.epochs)
    words: list[object] = [
        *("--actor.model_name_or_path", model),
        *("--train.agent_func_path", agent),
        *("--train.seed", setup.seed),
        *("--train.num_episodes", 1),
        *("--train.max_epochs", options.epochs),
        *("--train.batch_size", step * setup.k),
        *("--train.micro_batch_size", options.micro_batch),
        *("--rollout.batch_size", batch),
        *("--rollout.micro_batch_size", options.micro_batch),
        *("--rollout.n_samples_per_prompt", setup.k),
        *("--rollout.temperature", setup.temperature),
        *("--rollout.top_p", 1.0),
        *("--rollout.max_new_tokens", setup.max_response_tokens),
        *_data(setup, dataset),
        *_objective(options),
        *_optimizer(options, curve),
        *_machines(options),
        *_engines(options),
        *_checkpointing(options, checkpoints, output),
    ]
    if logs is not None:
        words += ["--logger.tensorboard_dir", logs, "--logger.wandb.run_name", "openrlhf"]
    return [*map(str, words), *options.extra]


def _curve(options: OpenRlhfOptions, share: tuple[float, float], *, updates: int) -> Piece:
    """The phase's piece of the schedule; a warm-up of less than one update is none.

    OpenRLHF rounds the warm-up up to whole updates, and the first of them has a rate of 0.
    """
    curve = piece(share, options.learning_rate, options.warmup)
    if curve.warmup_ratio * updates < 1:
        return Piece(rate=curve.rate, warmup_ratio=0.0, min_ratio=curve.min_ratio)
    return curve


def _data(setup: OptimizerSetup, dataset: Path) -> tuple[object, ...]:
    return (
        *("--data.prompt_dataset", dataset),
        *("--data.input_key", "prompt"),
        *("--data.label_key", "label"),
        *("--data.max_len", setup.max_prompt_tokens + setup.max_response_tokens),
    )


def _objective(options: OpenRlhfOptions) -> tuple[object, ...]:
    """Eq. 5 and 6: the group's mean as baseline, a clipped surrogate, no KL and so no reference model."""
    return (
        *("--algo.advantage.estimator", "group_norm" if options.scale_advantages else "dr_grpo"),
        *("--algo.advantage.is_correction_level", options.rollout_correction),
        *("--algo.kl.init_coef", 0),
        *("--actor.eps_clip", options.clip),
        *("--actor.loss_agg_mode", "seq-mean-token-mean" if options.sequence_mean else "token-mean"),
        *(("--actor.entropy_coef", 0) if options.log_entropy else ()),  # no bonus: 0 has it logged
    )


def _optimizer(options: OpenRlhfOptions, curve: Piece) -> tuple[object, ...]:
    return (
        *("--actor.adam.lr", curve.rate),
        *("--actor.adam.weight_decay", options.weight_decay),
        *("--actor.max_norm", options.max_grad_norm),
        *("--actor.lr_scheduler", "cosine_with_min_lr"),
        *("--actor.lr_warmup_ratio", curve.warmup_ratio),
        *("--actor.min_lr_ratio", curve.min_ratio),
    )


def _machines(options: OpenRlhfOptions) -> tuple[object, ...]:
    return (
        *("--actor.num_nodes", options.nodes),
        *("--actor.num_gpus_per_node", options.gpus_per_node),
        *("--ds.zero_stage", options.zero_stage),
        *("--ds.param_dtype", "bf16"),
        *("--ds.attn_implementation", options.attention),
        *_switches(
            {
                "--ds.adam_offload": options.adam_offload,
                "--ds.packing_samples": options.packing,
                "--actor.gradient_checkpointing_enable": options.gradient_checkpointing,
                "--train.colocate_all": options.colocate,
                "--ds.enable_sleep": options.colocate,
                "--vllm.enable_sleep": options.colocate,
            }
        ),
    )


def _engines(options: OpenRlhfOptions) -> tuple[object, ...]:
    return (
        *("--vllm.num_engines", options.engines),
        *("--vllm.tensor_parallel_size", options.tensor_parallel),
        *("--vllm.gpu_memory_utilization", options.gpu_memory),
        *("--vllm.sync_backend", options.sync_backend),
        "--vllm.enable_prefix_caching",  # the K samples of a group share their prompt
        *_switches({"--vllm.enforce_eager": options.enforce_eager}),
    )


def _checkpointing(options: OpenRlhfOptions, checkpoints: Path, output: Path) -> tuple[object, ...]:
    return (
        *("--ckpt.path", checkpoints),
        *("--ckpt.output_dir", output),
        *("--ckpt.save_steps", options.checkpoint_every),
        *("--ckpt.max_num", CHECKPOINTS_KEPT),
        *("--ckpt.best_metric_key", "none"),
        "--ckpt.load_enable",
    )


def _switches(flags: dict[str, bool]) -> list[str]:
    return [name for name, on in flags.items() if on]
