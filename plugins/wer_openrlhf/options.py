"""The table ``[optimizer.openrlhf]``."""

from __future__ import annotations

import math
import sys
from typing import Literal

from attrs import field, frozen
from attrs.validators import and_, ge, gt, in_, le, lt


@frozen(kw_only=True)
class OpenRlhfOptions:
    """How OpenRLHF trains the policy, and on what.

    The paper's settings are the defaults: six states a batch, a rate of 1e-6 with
    warm-up and cosine, one epoch.

    Attributes:
        python: The Python that has OpenRLHF, vLLM and Ray: a virtual environment of its
            own, because OpenRLHF pins another transformers than WER uses. Empty is the
            Python that runs WER.
        host: Address under which the trainer's machines reach this one. Only the
            loopback is served unless it is set.
        batch: States a batch: sampled, executed and learnt from together.
        minibatch: States an optimizer step; 0 is the whole batch. Clipping acts only
            with more steps than one a batch.
        epochs: Passes over a batch.
        learning_rate: Peak rate of AdamW.
        warmup: Share of the whole training over which the rate rises; it then falls to
            zero, a piece of cosine a phase.
        clip: The epsilon of the surrogate [Eq. 6].
        scale_advantages: Divide by the group's standard deviation [after Eq. 5].
        sequence_mean: Every candidate weighs the same, however long it is; else every token does.
        rollout_correction: Weigh tokens, or mask sequences, whose probability in vLLM
            differs from the trainer's.
        max_grad_norm: Gradients are scaled down to this norm.
        weight_decay: Of AdamW.
        lora_rank: Must be 0: OpenRLHF 0.11.2 fails at its first weight sync with adapters.
        nodes: Machines that train.
        gpus_per_node: GPUs on each of them that train.
        engines: vLLM engines that write.
        tensor_parallel: GPUs of one engine.
        colocate: Engines and trainer take turns on the same GPUs.
        gpu_memory: Share of a GPU's memory that an engine may take.
        zero_stage: Of DeepSpeed: 2 splits gradients and optimizer, 3 the weights too.
        adam_offload: Keep the optimizer's state in main memory.
        micro_batch: Sequences that a GPU learns from at once.
        gradient_checkpointing: Compute activations twice instead of keeping them.
        packing: Train on sequences without padding; needs flash attention.
        attention: transformers' name of the attention implementation.
        enforce_eager: vLLM without CUDA graphs: starts faster, writes slower.
        sync_backend: What carries new weights to the engines.
        checkpoint_every: The most batches between two checkpoints of a phase; its last batch has one.
        start_timeout_s: Seconds from launch until the first candidate is asked for.
        stall_timeout_s: Seconds without a sign of life, once it has started.
        port: Of the service that the trainer asks for rewards; 0 is any free one. Set it where
            a firewall stands between the trainer's machines and this one.
        extra: Further flags of OpenRLHF 0.11.2, each word a string of its own:
            ``["--actor.adam.betas", "0.9", "0.98"]``. Flags that WER derives, or that
            break what it relies on, are refused.
        log_entropy: Measure the policy's entropy, which takes 8 bytes a token of the longest
            sequence and a word of the vocabulary on every GPU.
        tensorboard: Keep OpenRLHF's own curves in the run's ``logs/tensorboard``.
    """

    python: str = ""
    host: str = ""
    batch: int = field(default=6, validator=ge(1))
    minibatch: int = field(default=0, validator=ge(0))
    epochs: int = field(default=1, validator=ge(1))
    learning_rate: float = field(default=1e-6, validator=gt(0.0))
    warmup: float = field(default=0.03, validator=and_(ge(0.0), lt(1.0)))
    clip: float = field(default=0.2, validator=and_(gt(0.0), lt(1.0)))
    scale_advantages: bool = False
    sequence_mean: bool = True
    rollout_correction: Literal["off", "token", "seq"] = field(
        default="off", validator=in_(("off", "token", "seq"))
    )
    max_grad_norm: float = field(default=1.0, validator=gt(0.0))
    weight_decay: float = field(default=0.0, validator=and_(ge(0.0), le(1.0)))
    lora_rank: int = field(default=0, validator=ge(0))
    nodes: int = field(default=1, validator=ge(1))
    gpus_per_node: int = field(default=1, validator=ge(1))
    engines: int = field(default=1, validator=ge(1))
    tensor_parallel: int = field(default=1, validator=ge(1))
    colocate: bool = True
    gpu_memory: float = field(default=0.5, validator=and_(gt(0.0), lt(1.0)))
    zero_stage: int = field(default=2, validator=in_((1, 2, 3)))
    adam_offload: bool = False
    micro_batch: int = field(default=1, validator=ge(1))
    gradient_checkpointing: bool = True
    packing: bool = False
    attention: str = "flash_attention_2"
    enforce_eager: bool = False
    sync_backend: Literal["nccl", "gloo"] = field(default="nccl", validator=in_(("nccl", "gloo")))
    checkpoint_every: int = field(default=1, validator=ge(1))
    start_timeout_s: float = field(default=1800.0, validator=gt(0.0))
    stall_timeout_s: float = field(default=3600.0, validator=gt(0.0))
    port: int = field(default=0, validator=and_(ge(0), le(65_535)))
    extra: tuple[str, ...] = ()
    log_entropy: bool = True
    tensorboard: bool = True

    def unit(self, k: int) -> int:
        """The number of states of which a batch must be a multiple, so that every GPU gets whole steps."""
        sequences = self.nodes * self.gpus_per_node * self.micro_batch
        return math.lcm(sequences // math.gcd(sequences, k), self.minibatch or 1)

    @property
    def interpreter(self) -> str:
        """The Python that has OpenRLHF."""
        return self.python or sys.executable
