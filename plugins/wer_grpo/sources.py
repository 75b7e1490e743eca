"""Where the writer's weights come from: a Hugging Face folder, a GGUF file, or a name of the catalogue."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from wer import catalogue
from wer.errors import ConfigError
from wer.paths import cache_dir

_SAME_MATRIX = 0.2


def writer_folder(writer: str, progress: Callable[[str], None]) -> str:
    """Find the writer and give what ``from_pretrained`` reads: a folder, or a name on the hub.

    Args:
        writer: A folder, a ``.gguf`` file, ``local/NAME`` or ``torch/NAME`` of the catalogue,
            ``local//path/to/file.gguf``, or the name of a model on the Hugging Face hub.

    Raises:
        ConfigError: Nothing of that name is here.
        WerError: A catalogue model could not be downloaded.
    """
    folder = Path(writer).expanduser()
    if (folder / "config.json").is_file():
        return str(folder)
    provider, _, rest = writer.partition("/")
    name = rest.partition("?")[0] if provider in ("local", "torch") else writer
    if name.endswith(".gguf"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ConfigError(
                f"no file {name!r} for the writer. Give the path of a GGUF file, as in local//home/me/model.gguf."
            )
        return str(_converted(path, catalogue.sha256(path), progress))
    if provider in ("local", "torch"):
        entry = catalogue.find(name)
        return str(_converted(catalogue.pull(name), entry.sha256, progress))
    return writer


def _converted(file: Path, sha256: str, progress: Callable[[str], None]) -> Path:
    """Dequantise a GGUF file once; later calls find an ordinary bfloat16 folder in the cache."""
    target = cache_dir() / "converted" / sha256
    if target.is_dir():
        return target
    progress(f"unpacking {file.name} into trainable weights (once, about a minute)")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        source: dict[str, Any] = {"gguf_file": file.name}
        model = AutoModelForCausalLM.from_pretrained(
            str(file.parent),
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
            **source,
        )
        tie_again(model)
        model.save_pretrained(scratch)
        AutoTokenizer.from_pretrained(str(file.parent), **source).save_pretrained(scratch)
        if not target.is_dir():
            scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def tie_again(model: Any) -> None:
    """Make embedding and output projection one matrix again where they were one before quantising.

    GGUF files hold the shared matrix twice, at two precisions, so that it loads as two.
    The output projection is kept: quantisers give it at least as many bits.
    """
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    if head is None or embedding.weight is head.weight or embedding.weight.shape != head.weight.shape:
        return
    rows, kept = embedding.weight.detach().float(), head.weight.detach().float()
    if float((rows - kept).norm() / kept.norm()) < _SAME_MATRIX:
        embedding.weight = head.weight
        model.config.tie_word_embeddings = True
