"""A recorded run that the wheel brings: what ``wer demo`` shows. How it was recorded is in its ``README.md``."""

from __future__ import annotations

import io
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from importlib import resources
from pathlib import Path

FILE = "recording.tar.xz"
_KEPT = ("run.toml", "about.toml", "report.md", "wer.sqlite", "skills")


def unpack(folder: Path) -> Path:
    """Put the recording below a folder, and give the run's own."""
    packed = (resources.files("wer.demo") / FILE).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        return folder / archive.getnames()[0].partition("/")[0]


def how() -> str:
    """How it was recorded, in Markdown."""
    return (resources.files("wer.demo") / "README.md").read_text("utf-8")


def pack(run: Path, file: Path) -> None:
    """Make a recording of a run folder that nobody writes to: logs and checkpoints stay behind."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "wer.sqlite"
        for name in ("wer.sqlite", "wer.sqlite-wal"):
            if (run / name).exists():
                shutil.copyfile(run / name, Path(scratch) / name)
        with closing(sqlite3.connect(whole)) as store:
            store.execute("pragma journal_mode=delete")
            store.execute("vacuum")
        with tarfile.open(file, "w:xz", preset=9) as archive:
            for name in _KEPT:
                archive.add(whole if name == whole.name else run / name, f"{run.name}/{name}", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing of whose machine it was."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
