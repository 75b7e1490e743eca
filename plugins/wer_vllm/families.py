"""How families of models write tool calls: the parser that vLLM needs for ``mode = "native"``."""

from __future__ import annotations

from collections.abc import Sequence

PARSERS: Sequence[tuple[str, str]] = (
    ("qwen3-coder", "qwen3_coder"),
    ("qwen3_coder", "qwen3_coder"),
    ("qwen", "hermes"),
    ("hermes", "hermes"),
    ("llama-4", "llama4_pythonic"),
    ("llama4", "llama4_pythonic"),
    ("llama-3", "llama3_json"),
    ("gpt-oss", "openai"),
    ("gpt_oss", "openai"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("granite-4", "granite4"),
    ("granite", "granite"),
    ("deepseek-v3.1", "deepseek_v31"),
    ("deepseek-v3", "deepseek_v3"),
    ("glm-4.5", "glm45"),
    ("glm-4.6", "glm45"),
    ("glm-4.7", "glm47"),
    ("kimi-k2", "kimi_k2"),
    ("phi-4-mini", "phi4_mini_json"),
    ("olmo-3", "olmo3"),
    ("internlm", "internlm"),
    ("minimax-m2", "minimax_m2"),
    ("seed-oss", "seed_oss"),
)
"""A part of a model's name, in small letters, and vLLM 0.29's parser; the first that fits counts."""


def parser(*names: str) -> str:
    """Choose by a model's names, the surest first: its own, then ``model_type`` of its configuration.

    Returns:
        The parser, or "" for a family that is not known here.
    """
    for name in names:
        for part, chosen in PARSERS:
            if part in name.lower():
                return chosen
    return ""
