"""Models that are named by a path: whether there is one, found out before anything is built or paid."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from wer.errors import ConfigError


def demand_weights(spec: str, providers: Container[str]) -> None:
    """Refuse a model that is named by a path under which there is no model.

    A name that may be one of a hub (``organisation/model``) is left to whoever loads it.

    Args:
        spec: As the user wrote it: a folder, a ``.gguf`` file, or ``provider/`` before one.
        providers: Names that may stand before the first slash.

    Raises:
        ConfigError: With what was expected there.
    """
    provider, slash, rest = spec.partition("/")
    offered = bool(slash) and provider in providers
    source = rest.partition("?")[0] if offered else spec
    path = Path(source).expanduser()
    if "@" in source:  # what a server elsewhere calls it
        return
    written_as_path = source.startswith(("/", "./", "../", "~"))
    if source.endswith(".gguf"):
        if not path.is_file():
            raise ConfigError(f"no file {source!r} for the model {spec!r}. Give the path of a GGUF file.")
    elif path.is_dir() and (written_as_path or not offered):
        if not (path / "config.json").is_file():
            raise ConfigError(
                f"the folder {source!r} for the model {spec!r} holds no config.json, so no model. Give a Hugging "
                "Face folder: a trained writer is in checkpoints/final/merged of its run."
            )
    elif written_as_path or (not offered and source.count("/") > 1):
        raise ConfigError(
            f"no folder {source!r} for the model {spec!r}. Give a Hugging Face folder (a trained writer is in "
            "checkpoints/final/merged of its run, once that has ended), or provider/name, with one of the "
            "providers that wer plugin list shows."
        )
