"""Run folders: making, finding, locking, and what ``run.toml`` says."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import platform
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import tomli_w

from wer.configuration import RunConfig, from_toml, to_toml
from wer.errors import ConfigError, StoreError
from wer.references import short
from wer.tables import nearest


def create(root: Path, config: RunConfig, *, command: str, now: datetime) -> Path:
    """Make ``runs/<id>/`` with ``run.toml`` and ``about.toml``; the id says when and what.

    Args:
        command: The command that makes it, such as ``run``; only that one can go on in it.
    """
    stem = f"{now:%Y%m%d-%H%M%S}-{'-'.join(map(short, config.env))}-{config.backend}"
    try:
        folder = _fresh(root, stem)
        (folder / "run.toml").write_text(to_toml(config), "utf-8")
        (folder / "about.toml").write_text(tomli_w.dumps({"command": command, **_about(now)}), "utf-8")
    except OSError as error:
        raise StoreError(
            f"cannot write a run folder below {str(root)!r}: {error}. Choose another with --runs."
        ) from error
    return folder


def _fresh(root: Path, stem: str) -> Path:
    for name in (stem, *(f"{stem}-{i}" for i in range(2, 1000))):
        try:
            (root / name).mkdir(parents=True)
        except FileExistsError:
            continue
        return root / name
    raise FileExistsError(f"{stem} and a thousand more")


def find(root: Path, run: str | None) -> Path:
    """Find a run folder by path or id; None is the newest.

    Raises:
        ConfigError: There is none of that name, with the nearest.
    """
    if run is not None and (Path(run) / "run.toml").is_file():
        return Path(run) if Path(run).name not in ("", "..") else Path(run).resolve()  # its name is the run's
    if run is not None and Path(run).is_dir():
        raise ConfigError(
            f"{run!r} is a folder, but not a run's: it has no run.toml. Name a folder that wer run, eval or refine "
            "made."
        )
    known = below(root)
    if run is None and known:
        return known[0]
    for folder in known:
        if folder.name == run:
            return folder
    names = [folder.name for folder in known]
    if run is None:
        raise ConfigError(
            f"no runs below {str(root)!r}. Start one with wer run, or name the folder with --runs."
        )
    hint = nearest(run, names) or "."
    raise ConfigError(f"no run named {run!r} below {str(root)!r}{hint} Known: {', '.join(names) or 'none'}.")


def below(root: Path) -> Sequence[Path]:
    """The run folders below another, by their last start, the newest first.

    A folder's own time is not asked: it changes when a run is only looked at.
    """
    return [path.parent for path in sorted(root.glob("*/run.toml"), key=_written, reverse=True)]


def _written(path: Path) -> float:
    """When a file was written; one that is removed at this moment counts as the oldest."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def configuration(folder: Path) -> RunConfig:
    """Read the resolved configuration of a run."""
    path = folder / "run.toml"
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {str(path)!r}: {error}. The run folder is damaged.") from error
    return from_toml(text, source=str(path))


def demand_store(folder: Path) -> None:
    """Refuse a run that made something and has lost its store: it would pay for everything again.

    Raises:
        StoreError: With what is there.
    """
    made = [name for name in ("checkpoints", "skills", "report.md") if (folder / name).exists()]
    if made and not (folder / "wer.sqlite").is_file():
        raise StoreError(
            f"run {folder.name!r} has {', '.join(made)} but no wer.sqlite: its rollouts are lost. Restore the "
            "file, or start a new run."
        )


def rewrite(folder: Path, config: RunConfig) -> None:
    """Put a configuration, changed or not, in the place of the old one, whole or not at all."""
    scratch = folder / "run.toml.new"
    scratch.write_text(to_toml(config), "utf-8")
    scratch.replace(folder / "run.toml")


def demand_command(folder: Path, command: str) -> None:
    """Refuse a folder that another command made.

    Raises:
        ConfigError: With the command that made it.
    """
    try:
        made_by = tomllib.loads((folder / "about.toml").read_text("utf-8")).get("command")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"cannot read {str(folder / 'about.toml')!r}: {error}. The run folder is damaged."
        ) from error
    if made_by != command:
        raise ConfigError(
            f"{folder.name!r} was made by wer {made_by}, and wer {command} can't go on in it. "
            f"Start wer {made_by} again: what is stored stays in that folder."
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run for this process.

    Raises:
        StoreError: Another process holds it, by its number.
    """
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise StoreError(
                f"run {folder.name!r} is in use by process {holder}. Wait for it, or stop it first."
            ) from error
        file.truncate(0)
        file.write(_own_pid())
        file.flush()
        yield


def holder(folder: Path) -> str | None:
    """The process that holds the run at this moment, or None: what is read now is then not the whole."""
    try:
        with (folder / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return (folder / "lock").read_text().strip() or "unknown"
    except OSError:
        return None
    return None


def _own_pid() -> str:
    return str(os.getpid())


def _about(now: datetime) -> dict[str, object]:
    return {
        "created": now.isoformat(timespec="seconds"),
        "wer": importlib.metadata.version("wer-skills"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "commit": _commit(),
    }


def _commit() -> str:
    """The git commit of the working folder, or nothing outside a repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()
