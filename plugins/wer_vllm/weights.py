"""What makes two folders of weights the same model, and what a folder says about its model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

_WHOLE_BYTES = 32 << 20
_SAMPLES = 64
_SAMPLE_BYTES = 64 << 10


def fingerprint(folder: Path) -> str:
    """Hash a model's folder in a moment: small files whole, of large ones the size and 64 places.

    Training moves every weight a little, so that a checkpoint that was trained on differs
    in any place.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= _WHOLE_BYTES:
                digest.update(file.read())
                continue
            for place in range(_SAMPLES):
                file.seek((size - _SAMPLE_BYTES) * place // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def model_type(folder: Path) -> str:
    """``model_type`` of a folder's ``config.json``, or "" when it has none."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    return str(config.get("model_type", "")) if isinstance(config, Mapping) else ""
