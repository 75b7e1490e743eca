"""A random Qwen2 of about a hundred thousand weights that reads any text, byte by byte."""

from pathlib import Path

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_policy(folder: Path, *, seed: int = 0, context: int = 32_768) -> Path:
    """Write the model and its tokenizer as an ordinary Hugging Face folder.

    Heads have 32 dimensions, the fewest that vLLM's CPU attention takes.
    """
    letters = {letter: index for index, letter in enumerate(sorted(ByteLevel.alphabet()))}
    vocabulary = {**letters, **{word: len(letters) + index for index, word in enumerate(SPECIAL)}}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[],
        unk_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL),
    )
    tokenizer.chat_template = TEMPLATE
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=320,
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                max_position_embeddings=context,
                tie_word_embeddings=False,
                bos_token_id=None,
                eos_token_id=vocabulary["<|im_end|>"],
                pad_token_id=vocabulary["<|endoftext|>"],
                initializer_range=0.15,
            )
        )
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
