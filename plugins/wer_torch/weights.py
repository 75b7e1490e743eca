"""Where weights come from: a Hugging Face folder, a GGUF file, or a name of the catalogue."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from attrs import field, frozen
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.utils import logging as transformers_logging

from wer import catalogue
from wer.errors import ConfigError, ModelError
from wer.paths import cache_dir

_SAME_MATRIX = 0.2
_HASHED = ("*.safetensors", "config.json", "tokenizer.json")


@frozen(kw_only=True, eq=False)
class Loaded:
    """A causal language model in memory, ready to be asked.

    Attributes:
        model: A ``transformers`` model in evaluation mode, without gradients.
        tokenizer: Its fast tokenizer, with a chat template.
        name: For people: the file's or folder's own name.
        sha256: Of the GGUF file, or of the folder's weights, configuration and tokenizer.
    """

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    name: str
    sha256: str

    @property
    def dtype(self) -> str:
        """Number format of the weights, ``float32`` or ``bfloat16``: replies differ with it."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a reply."""
        ends: set[int] = set()
        for one in (
            self.model.generation_config.eos_token_id,
            self.model.config.get_text_config().eos_token_id,
            self.tokenizer.eos_token_id,
        ):
            ends.update(one if isinstance(one, list) else [] if one is None else [one])
        return frozenset(ends)


def load(source: str, dtype: torch.dtype | None = None) -> Loaded:
    """Load a model; a GGUF file is converted at its first use, which takes about a minute.

    Args:
        source: A folder, a path ending in ``.gguf``, or a name of the catalogue.
        dtype: None is bfloat16 where the hardware has it, else float32.

    Raises:
        ConfigError: Nothing of that name is here, or it has no chat template.
        WerError: A catalogue model could not be downloaded.
        ModelError: The files are not a causal language model that transformers can read.
    """
    name, folder, sha256 = _locate(source)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        with _quiet():
            model: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype or native_dtype(device), local_files_only=True
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"torch could not load {folder} ({error}). Check that it is a causal language model with its "
            "tokenizer, as save_pretrained writes it."
        ) from error
    if not tokenizer.is_fast or tokenizer.chat_template is None:
        raise ConfigError(
            f"the tokenizer in {folder} has no chat template or is not a fast one. Use an instruct model."
        )
    model = model.to(device).eval().requires_grad_(False)
    return Loaded(model=model, tokenizer=tokenizer, name=name, sha256=sha256)


def native_dtype(device: torch.device) -> torch.dtype:
    """Give bfloat16 where it is fast, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    capabilities = torch.cpu.get_capabilities()
    native = any(capabilities.get(name) for name in ("amx_bf16", "avx512_bf16", "bf16"))
    return torch.bfloat16 if native else torch.float32


def tie_again(model: Any) -> None:
    """Make embedding and output projection one matrix again where they were one before quantising.

    GGUF files hold the shared matrix twice, at two precisions, so that it loads as two.
    The output projection is kept: quantisers give it at least as many bits.
    """
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    if head is None or embedding.weight is head.weight or embedding.weight.shape != head.weight.shape:
        return
    with torch.no_grad():
        gap = (embedding.weight - head.weight).float().norm() / head.weight.float().norm()
    if float(gap) < _SAME_MATRIX:
        embedding.weight = head.weight
        model.config.tie_word_embeddings = True


def _locate(source: str) -> tuple[str, Path, str]:
    """Give a name, the folder that ``from_pretrained`` reads, and the SHA-256."""
    path = Path(source).expanduser()
    if (path / "config.json").is_file():
        return path.resolve().name, path, _folder_sha256(path)
    if source.endswith(".gguf") or "/" in source:
        if not path.is_file():
            raise ConfigError(
                f"no model at {source!r}. Give a Hugging Face folder with config.json, a GGUF file, as in "
                f"torch//home/me/model.gguf, or one of: {', '.join(catalogue.entries())}."
            )
        sha256 = catalogue.sha256(path)
        return path.stem, converted(path, sha256), sha256
    entry = catalogue.find(source)
    return entry.name, converted(catalogue.pull(source), entry.sha256), entry.sha256


def _folder_sha256(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _HASHED for path in folder.glob(pattern)):
        digest.update(f"{path.name} {catalogue.sha256(path)}\n".encode())
    return digest.hexdigest()


def converted(file: Path, sha256: str, progress: Callable[[str], None] = lambda line: None) -> Path:
    """Dequantise a GGUF file once; later calls find an ordinary bfloat16 folder in the cache.

    Args:
        sha256: Of the file; names the folder.
        progress: Told before work that takes about a minute.
    """
    target = cache_dir() / "converted" / sha256
    if target.is_dir():
        return target
    progress(f"unpacking {file.name} into bfloat16 weights (once, about a minute)")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    source: dict[str, Any] = {"gguf_file": file.name}
    try:
        with _quiet():
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
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"transformers could not read {file} ({error}). Check that it is a GGUF file."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars out of ours."""
    bars: Any = transformers_logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
