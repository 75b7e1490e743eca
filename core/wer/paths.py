"""Where WER keeps what can be made again: models, wheels, virtual environments."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Give the cache folder, made private at first use: ``$WER_CACHE``, or ``wer`` under the XDG cache."""
    chosen = os.environ.get("WER_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(chosen) if chosen else home / "wer"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
