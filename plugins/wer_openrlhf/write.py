"""Writes answers with vLLM for prompts that come in on standard input, and learns nothing.

Runs in OpenRLHF's Python. The first line in names the model and its lengths; each further line is
a JSON object with ``prompts``, ``seeds``, ``k``, ``temperature``, ``top_k`` and ``max_tokens``, and is
answered by one line of JSON: for each prompt its number of tokens and k answers. Whatever
libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO


def main() -> None:
    """Serve until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        settings = json.loads(sys.stdin.readline())
        engine = _engine(settings)
        print(json.dumps({"ready": True}), file=out, flush=True)
        for line in sys.stdin:
            _answer(engine, json.loads(line), out)


def _engine(settings: dict[str, Any]) -> Any:
    from vllm import LLM

    return LLM(
        model=settings["model"],
        max_model_len=settings["max_model_len"],
        tensor_parallel_size=settings["tensor_parallel"],
        gpu_memory_utilization=settings["gpu_memory"],
        enforce_eager=settings["enforce_eager"],
        enable_prefix_caching=True,
        dtype="bfloat16",
    )


def _answer(engine: Any, request: dict[str, Any], out: TextIO) -> None:
    from vllm import SamplingParams

    tokenizer = engine.get_tokenizer()
    prompts = [
        {"prompt_token_ids": tokenizer(text, add_special_tokens=False)["input_ids"]}
        for text in request["prompts"]
    ]
    greedy = request["temperature"] <= 0
    params = [
        SamplingParams(
            n=1 if greedy else request["k"],
            temperature=max(request["temperature"], 0.0),
            top_k=0 if greedy else request["top_k"],
            max_tokens=request["max_tokens"],
            seed=seed,
            logprobs=None,
            skip_special_tokens=True,
        )
        for seed in request["seeds"]
    ]
    found = engine.generate(prompts, params, use_tqdm=False)
    groups = []
    for prompt, result in zip(prompts, found, strict=True):
        answers = [
            {"text": each.text, "token_ids": [int(token) for token in each.token_ids]}
            for each in result.outputs
        ]
        answers = answers * request["k"] if greedy else answers
        groups.append({"prompt_tokens": len(prompt["prompt_token_ids"]), "answers": answers})
    print(json.dumps({"groups": groups}), file=out, flush=True)


if __name__ == "__main__":
    main()
