"""Temporary folders that know their owner, so that those of a process that was killed go at the next start."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wer.sandboxing.owners import Owner

_PREFIX = "wer-"
_OWNER = "owner.json"


def scratch_folder(purpose: str) -> Path:
    """Make a folder of mode 700, with a note of who owns it."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    (folder / _OWNER).write_text(json.dumps(Owner.me().write()))
    return folder


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """Have such a folder for as long as it is needed."""
    folder = scratch_folder(purpose)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def reap_folders() -> list[str]:
    """Remove the folders of processes that died; return a line for each."""
    reaped = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = Owner.read(json.loads((folder / _OWNER).read_text()))
        except (OSError, ValueError):
            continue  # half made by a living process, or another user's
        if owner.dead:
            shutil.rmtree(folder, ignore_errors=True)
            reaped.append(f"folder {folder} of process {owner.pid}, which has ended")
    return reaped
