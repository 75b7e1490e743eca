"""Why a server died, as far as its last words tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CAUSES: Sequence[tuple[str, str]] = (
    (
        r"larger than the (maximum number of tokens|available KV cache)|estimated maximum model length",
        "its context does not fit into the memory that is left. Ask for less with ?context=8192, or give it "
        "more GPUs",
    ),
    (
        r"out of memory|OutOfMemory|Free memory on device|No available memory|not enough memory|can't allocate",
        "out of memory. Use a smaller model, more GPUs (--gpus executor=0-3), less context (?context=8192), "
        "or a smaller share (?memory=45) when two servers use one GPU",
    ),
    (
        r"gated repo|GatedRepo|401 Client Error",
        "the model is gated. Accept its licence on the hub and set HF_TOKEN",
    ),
    (
        r"RepositoryNotFound|Repository Not Found|not a valid model identifier|Invalid repository ID|HFValidation"
        r"|not a local folder|is not a valid model|does not appear to have a file named config",
        "no such model. Check the name, or give the path of a folder with config.json and weights",
    ),
    (
        r"LocalEntryNotFound|offline mode|OfflineMode|cached snapshot|couldn't connect to|Connection error",
        "the model is not on this machine and the hub can't be reached. Download it first, or give a folder",
    ),
    (
        r"[Aa]ddress already in use|EADDRINUSE",
        "another program took its port",
    ),
    (
        r"No package metadata was found for vllm|Failed to infer device type",
        "this vLLM finds no device that it was built for: no GPU, no driver, or a CPU wheel under another "
        "name (see docs/vllm.md)",
    ),
    (
        r"No CUDA GPUs|no NVIDIA driver|CUDA driver version|NVML|invalid device ordinal|number of available GPUs",
        "the GPUs that it was given are not there. Check nvidia-smi and --gpus",
    ),
    (
        r"divisible by tensor|not divisible by",  # an engine that dies of anything dumps its tensor_parallel_size
        "the model can't be divided by so many GPUs. Use ?tensor=1, 2 or 4, and ?data= for the rest",
    ),
    (
        r"CPU Generator does not use offset",
        "on a CPU its seeds work only for prompts that are read at one go. Start it through a script that adds two "
        "flags (see docs/vllm.md)",
    ),
    (
        r"unrecognized arguments|invalid choice|No module named '?vllm",
        "its vLLM is missing or of another version than 0.29, for which WER's flags are meant",
    ),
)
_CHATTER = re.compile(r" (INFO|WARNING|DEBUG) |nanobind|resource_tracker")


def likely_cause(words: str, status: int | None) -> str:
    """Name the likely cause with its remedy, or say how it ended.

    Args:
        words: The end of its log.
        status: As a shell has it, 128 + the number of a signal; None when it still runs.
    """
    for pattern, cause in _CAUSES:
        if re.search(pattern, words):
            return cause
    if status == 137:
        return "it was killed, by hand or by the kernel for want of memory (see dmesg)"
    if status is None:
        return "it is still busy"
    return f"it ended with exit status {status}"


def last_words(text: str, lines: int = 12) -> str:
    """The end of a log without its chatter, errors first and foremost."""
    told = [line for line in text.splitlines() if line.strip()]
    grave = [line for line in told if not _CHATTER.search(f" {line[:60]}")]
    return "\n".join(line[:300] for line in (grave or told)[-lines:])
