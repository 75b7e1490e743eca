"""The writer's tokenizer and chat template, tried before anything is paid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import AutoTokenizer

from wer.errors import ConfigError
from wer.records import Message

_PROBE = (Message(role="system", content="You revise."), Message(role="user", content="Revise."))


def try_folder(writer: str) -> None:
    """Try a writer that is a model folder here; another one is tried when it is loaded.

    Raises:
        ConfigError: Its tokenizer or its chat template is of no use.
    """
    folder = Path(writer).expanduser()
    if (folder / "config.json").is_file():
        open_tokenizer(str(folder), writer)


def open_tokenizer(folder: str, writer: str) -> Any:
    """Load a tokenizer that reads text and has a chat template for a system and a user message.

    Args:
        folder: A folder, or a name on the hub.
        writer: As the user named it.

    Raises:
        ConfigError: It is none.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # tokenizers raise whatever comes, bare Exception too
        raise ConfigError(
            f"the grpo backend cannot read the tokenizer of the writer {writer!r} ({error}). It needs a Hugging "
            "Face folder with tokenizer.json, a .gguf file, or local/NAME of `wer models list`."
        ) from error
    if tokenizer.chat_template is None:
        raise ConfigError(f"the writer {writer!r} has no chat template: choose an instruction-tuned model.")
    if not tokenizer("a")["input_ids"]:  # transformers makes an empty one where the files are missing
        raise ConfigError(
            f"the writer {writer!r} has a tokenizer that reads nothing: its vocabulary is missing. Put the "
            "model's tokenizer.json into its folder."
        )
    rendered(tokenizer, _PROBE, writer)
    return tokenizer


def rendered(tokenizer: Any, messages: Sequence[Message], writer: str) -> str:
    """Write a request as the text that the policy reads.

    Raises:
        ConfigError: The template refuses it.
    """
    chat = [{"role": message.role, "content": message.content} for message in messages]
    try:
        text: str = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    except (TemplateError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the chat template of the writer {writer!r} refuses a request of a system and a user message "
            f"({error}). Choose a model whose template takes both, or mend its chat_template.jinja."
        ) from error
    return text
