"""What a policy of so many weights takes on disk and on a GPU, by counting bytes."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from wer_openrlhf.arguments import CHECKPOINTS_KEPT
from wer_openrlhf.options import OpenRlhfOptions

WEIGHT = 2
"""Bytes of a weight, and of its gradient, in bfloat16."""
STATE = 12
"""Bytes of Adam's state a weight: the weight, its mean and its variance in float32."""


def parameters(folder: Path) -> int:
    """Count the weights of a model folder by the headers of its safetensors files.

    Raises:
        ValueError: There are none, or one is cut short.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} holds no .safetensors file")
    return sum(_weights(file) for file in files)


def trainer_bytes(weights: int, options: OpenRlhfOptions) -> int:
    """Bytes a GPU for weights, gradients and Adam's state.

    DeepSpeed splits Adam's state over the GPUs from stage 1, gradients from stage 2,
    weights at stage 3. With ``adam_offload`` Adam's state is in main memory.
    """
    gpus = options.nodes * options.gpus_per_node
    shares = (
        (WEIGHT, options.zero_stage >= 3),
        (WEIGHT, options.zero_stage >= 2),
        (0 if options.adam_offload else STATE, True),
    )
    return sum(weights * each // (gpus if split else 1) for each, split in shares)


def logits_bytes(tokens: int, vocabulary: int, options: OpenRlhfOptions) -> int:
    """Bytes a GPU for the logits of the sequences that it learns from at once.

    OpenRLHF computes them for prompt and answer alike: in bfloat16 and in float32, both
    with a gradient. The entropy takes a distribution and a product more, in float32.

    Args:
        tokens: Of the longest sequence.
    """
    each = 2 * (WEIGHT + 4) + (8 if options.log_entropy else 0)
    return options.micro_batch * tokens * vocabulary * each


def disk_bytes(weights: int) -> int:
    """Bytes that a phase may come to hold: DeepSpeed's checkpoints, and the model folder at its end."""
    return weights * ((WEIGHT + STATE) * CHECKPOINTS_KEPT + WEIGHT)


def _weights(file: Path) -> int:
    """Count a file's weights: its header comes first, a JSON object behind its own length."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        (length,) = struct.unpack("<Q", head) if len(head) == 8 else (size,)
        if length + 8 > size:
            raise ValueError(f"{file} is cut short")
        header = json.loads(stream.read(length))
    tensors = [value for name, value in header.items() if name != "__metadata__"]
    end = max((value["data_offsets"][1] for value in tensors), default=0)
    if 8 + length + end > size:
        raise ValueError(f"{file} is cut short: {size:,} of {8 + length + end:,} bytes")
    return sum(_product(value["shape"]) for value in tensors)


def _product(shape: list[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
