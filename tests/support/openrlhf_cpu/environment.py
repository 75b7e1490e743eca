"""Where the CPU environment of OpenRLHF is, and what its processes need to be told."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SHIMS = Path(__file__).parent / "shims"
CPU_FLAGS = (
    *("--vllm.sync_backend", "gloo"),
    *("--ds.attn_implementation", "sdpa"),
    "--vllm.enforce_eager",
)
"""What a CPU needs beside the flags that WER derives."""


def python() -> str:
    """The Python that has OpenRLHF: ``WER_OPENRLHF_PYTHON``, or what ``make openrlhf-cpu`` built."""
    path = Path(os.environ.get("WER_OPENRLHF_PYTHON", ROOT / ".venv-openrlhf/bin/python"))
    assert path.is_file(), f"no {path}: build it with `make openrlhf-cpu`, or set WER_OPENRLHF_PYTHON"
    return str(path.absolute())


def variables() -> dict[str, str]:
    """The environment of a process that runs OpenRLHF here; lay it over ``os.environ``."""
    return {
        "PYTHONPATH": str(SHIMS),
        "DS_ACCELERATOR": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


def run_script(script: Path, *arguments: str, timeout_s: float = 300) -> Any:
    """Run a script under OpenRLHF's Python and read the JSON of its last line.

    Raises:
        AssertionError: The script failed; the message is what it printed.
    """
    done = subprocess.run(
        [python(), str(script), *arguments],
        env={**os.environ, **variables()},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"{script.name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])
