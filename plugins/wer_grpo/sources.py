"""Where the writer's weights come from: a Hugging Face folder, a GGUF file, or a name of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wer import catalogue
from wer.errors import ConfigError
from wer_torch.weights import converted


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
        return str(converted(path, catalogue.sha256(path), progress))
    if provider in ("local", "torch"):
        entry = catalogue.find(name)
        return str(converted(catalogue.pull(name), entry.sha256, progress))
    return writer
