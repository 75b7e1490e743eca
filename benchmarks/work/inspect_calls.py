"""The same calls as an evaluation of inspect_ai: one model call a sample, with its log."""

from __future__ import annotations

import os
import tempfile

from bench_prompt import PROMPT, USER
from child import answer, asked, cpu_s, wall_s

os.environ["INSPECT_DISPLAY"] = "none"

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message


def main() -> None:
    """Evaluate as many samples as calls were asked for."""
    samples = [Sample(input=USER, target="moved") for _ in range(asked("calls"))]
    task = inspect_ai.Task(
        dataset=MemoryDataset(samples), solver=[system_message(PROMPT), generate()], scorer=includes()
    )
    with tempfile.TemporaryDirectory() as folder:
        cpu, began = cpu_s(), wall_s()
        [log] = inspect_ai.eval(
            task,
            model="openai/mock",
            model_base_url=asked("url"),
            model_args={"api_key": "none", "responses_api": False},
            max_connections=asked("concurrency"),
            max_samples=asked("concurrency"),
            log_dir=folder,
            display="none",
        )
        wall, cpu = wall_s() - began, cpu_s() - cpu
    assert log.status == "success", log.error
    answer(calls=asked("calls"), wall_s=wall, cpu_s=cpu)


if __name__ == "__main__":
    main()
