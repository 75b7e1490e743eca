"""The table ``[optimizer.grpo]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import and_, ge, gt, in_, le, lt


def _projections(_: Any, attribute: Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    if not value:
        raise ValueError(f"{attribute.name} is empty: name at least one, or set lora_rank = 0")


@frozen(kw_only=True)
class GrpoOptions:
    """How the policy is updated.

    The paper's settings are ``batch = 6`` and ``learning_rate = 1e-6`` on all weights;
    adapters need a far larger rate than whole weights do.

    Attributes:
        batch: States a batch: sampled, executed and learnt from together.
        minibatch: States an optimizer step; 0 is the whole batch.
        epochs: Passes over a batch. The first step is on policy, so that clipping acts
            only when there are more steps than one a batch.
        learning_rate: Peak rate of AdamW.
        warmup: Share of the whole training over which the rate rises linearly; it then
            falls to zero along a cosine.
        clip: The epsilon of the surrogate [Eq. 6].
        ratio: ``token`` clips a ratio a token and means over the tokens of a candidate,
            as GRPO is practised; ``sequence`` clips one ratio a candidate, as the paper
            writes it: it leaves the interval after small changes of long answers.
        kl: Coefficient of a penalty on the divergence from the writer as it was given (its
            adapters off, or its first weights); 0 is none, as in WER's paper.
        scale_advantages: Divide by the group's standard deviation [after Eq. 5].
        max_grad_norm: Gradients are scaled down to this norm.
        weight_decay: Of AdamW.
        lora_rank: Rank of the adapters; 0 trains all weights.
        lora_alpha: Adapters are scaled by alpha / rank.
        lora_targets: Names of the projections that get adapters; ``all-linear`` is all.
        gradient_checkpointing: Compute activations twice instead of keeping them.
        dtype: Of the frozen weights and of the arithmetic; ``auto`` is bfloat16 where
            the processor computes in it, else float32.
        device: ``auto`` is CUDA where there is one, else the CPU.
        threads: CPU threads of torch; 0 is one a processor that this process may use.
    """

    batch: int = field(default=6, validator=ge(1))
    minibatch: int = field(default=0, validator=ge(0))
    epochs: int = field(default=2, validator=ge(1))
    learning_rate: float = field(default=1e-4, validator=gt(0.0))
    warmup: float = field(default=0.05, validator=and_(ge(0.0), lt(1.0)))
    clip: float = field(default=0.2, validator=and_(gt(0.0), lt(1.0)))
    ratio: Literal["token", "sequence"] = field(default="token", validator=in_(("token", "sequence")))
    kl: float = field(default=0.0, validator=ge(0.0))
    scale_advantages: bool = False
    max_grad_norm: float = field(default=1.0, validator=gt(0.0))
    weight_decay: float = field(default=0.0, validator=and_(ge(0.0), le(1.0)))
    lora_rank: int = field(default=16, validator=ge(0))
    lora_alpha: float = field(default=32.0, validator=gt(0.0))
    lora_targets: tuple[str, ...] = field(default=("all-linear",), validator=_projections)
    gradient_checkpointing: bool = False
    dtype: Literal["auto", "bfloat16", "float32", "float64"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int = field(default=0, validator=ge(0))
