"""The command line and the environment of ``vllm serve``, from what the user asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence

from wer.errors import ConfigError
from wer_vllm.naming import VllmOptions


def arguments(
    model: str, options: VllmOptions, *, gpus: Sequence[int], parser: str, port: int
) -> tuple[str, ...]:
    """Write what follows ``vllm``.

    ``--generation-config vllm``: a model's own ``generation_config.json`` would otherwise
    decide on every part of the sampling that a request leaves out. The configuration of
    structured outputs: a small model that may write any white space between the parts of its
    JSON now and then writes nothing else.

    Raises:
        ConfigError: The GPUs can't be divided as asked.
    """
    chosen: dict[str, int | float | str] = {
        "--host": "127.0.0.1",
        "--port": port,
        "--served-model-name": model,
        "--generation-config": "vllm",
        "--structured-outputs-config": '{"backend": "xgrammar", "disable_any_whitespace": true}',
        "--tensor-parallel-size": _tensor(options, len(gpus)),
    }
    if options.data > 1:
        chosen["--data-parallel-size"] = options.data
    if options.context:
        chosen["--max-model-len"] = options.context
    if options.memory:
        chosen["--gpu-memory-utilization"] = options.memory / 100
    if options.revision:
        chosen["--revision"] = options.revision
    if parser:
        chosen["--tool-call-parser"] = parser
    switches = ["--enable-prefix-caching", "--enable-prompt-tokens-details", "--disable-uvicorn-access-log"]
    if parser:
        switches.append("--enable-auto-tool-choice")
    if options.eager:
        switches.append("--enforce-eager")
    pairs = (word for flag, value in chosen.items() for word in (flag, str(value)))
    return ("serve", model, *pairs, *switches)


def environ(*, key: str, gpus: Sequence[int]) -> dict[str, str]:
    """The user's environment without keys of APIs, which a server does not need, and with one of its own.

    Args:
        key: What the server asks of its callers; the command line would show it to everybody.
    """
    theirs = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    ours = {
        "VLLM_API_KEY": key,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_HOST_IP": "127.0.0.1",  # its parts talk to each other on this machine only
    }
    if gpus:
        # The order of nvidia-smi, by which the user counts.
        ours |= {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return {**theirs, **ours}


def _tensor(options: VllmOptions, gpus: int) -> int:
    tensor = options.tensor or max(1, gpus // options.data)
    if gpus and tensor * options.data != gpus:
        raise ConfigError(
            f"?tensor={tensor}&data={options.data} uses {tensor * options.data} GPUs and --gpus gives {gpus}. "
            "Make tensor times data the number of GPUs."
        )
    return tensor
