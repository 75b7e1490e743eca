"""Reads a file of prompts as the real trainer does.

python read_dataset.py FILE TOKENIZER      prints what it gives to the engines, as JSON
"""

import json
import sys
from types import SimpleNamespace

from openrlhf.datasets import PromptDataset
from openrlhf.datasets.utils import blending_datasets
from transformers import AutoTokenizer

data = SimpleNamespace(input_key="prompt", label_key="label", apply_chat_template=False, image_key="images")
strategy = SimpleNamespace(
    args=SimpleNamespace(data=data, use_ms=False), print=lambda *_: None, is_rank_0=lambda: False
)
table = blending_datasets(sys.argv[1], None, strategy, 0, dataset_split="train")
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
prompts = PromptDataset(table, tokenizer, strategy)
_, texts, labels, images = prompts.collate_fn([prompts[index] for index in range(len(prompts))])
tokens = [tokenizer(text=text, add_special_tokens=False)["input_ids"] for text in texts]
print(json.dumps({"prompts": texts, "labels": labels, "images": images, "tokens": tokens}))
