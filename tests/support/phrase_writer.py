"""A writer of a hundred thousand weights that answers in whole phrases, so that its skills can be judged.

Its tokenizer has a token for each phrase of an answer, and its weights are made so that each
phrase follows the one before. Only the step that it advises is a matter of chance: what GRPO
then learns is which step pays.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from support.openrlhf_cpu.policy import make_policy
from transformers import AutoModelForCausalLM, AutoTokenizer

OPEN = (
    "<think>\nThe agent skipped a step.\n</think>\n<skill>\nname: bfcl-skill\n"
    "description: Multi-turn tool use.\n## Workflow\n1. "
)
CLOSE = "\n</skill>"
BEGIN, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = "{{ messages[-1]['content'][:120] }}" + BEGIN
_SURE = 12.0


def make_phrase_writer(folder: Path, steps: Mapping[str, float]) -> Path:
    """Write a model that advises each of the steps with a probability in proportion to its weight."""
    make_policy(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([OPEN, CLOSE, *steps])
    tokenizer.chat_template = TEMPLATE
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    follows = [(BEGIN, {OPEN: 1.0}), (OPEN, steps), (CLOSE, {END: 1.0})]
    follows += [(step, {CLOSE: 1.0}) for step in steps]
    with torch.no_grad():
        for layer in model.model.layers:  # an empty residual: each token alone decides the next
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        embedded, head = model.model.embed_tokens.weight, model.lm_head.weight
        head.mul_(0.1)
        head[:, : len(follows)] = 0.0
        embedded[:, : len(follows)] = 0.0
        scale = math.sqrt(embedded.shape[1])  # of a unit vector after the norm
        for place, (token, nexts) in enumerate(follows):
            row = tokenizer.convert_tokens_to_ids(token)
            embedded[row] = 0.0
            embedded[row, place] = 1.0
            for following, weight in nexts.items():
                score = _SURE + math.log(weight / sum(nexts.values()))
                head[tokenizer.convert_tokens_to_ids(following), place] = score / scale
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
