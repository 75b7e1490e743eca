"""Packages of a sandbox, fetched once into the cache and installed beside nobody else's.

A benchmark's own package has pins of its own, so it never enters the user's
environment: it is unpacked into a folder that only a sandbox has on its module path.
"""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from wer.errors import WerError
from wer.paths import cache_dir
from wer.records import content_hash

_FETCH_S = 900


def fetch(requirements: Sequence[str]) -> Path:
    """Give a folder of the cache that holds the wheels of these requirements, and only these.

    The network is needed the first time only.

    Args:
        requirements: Exact pins; their dependencies are not followed.

    Raises:
        WerError: pip is missing, or could not get one of them.
    """
    return once(_place("wheels", requirements), lambda folder: _download(requirements, folder))


def install(requirements: Sequence[str]) -> Path:
    """Give a folder of the cache with these requirements installed, for a module path.

    Raises:
        WerError: As for `fetch`.
    """
    return once(_place("requirements", requirements), lambda folder: _unpack(requirements, folder))


def once(place: Path, make: Callable[[Path], None]) -> Path:
    """Make a folder of the cache unless it is there; safe against others who do the same now.

    Args:
        place: Where it shall be.
        make: Fills an empty folder, which is moved into place when it is whole.
    """
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        lock = held.enter_context(place.with_name(place.name + ".lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=place.parent))
            held.callback(shutil.rmtree, draft, ignore_errors=True)
            draft.chmod(0o755)
            make(draft)
            draft.rename(place)
    return place


def _place(kind: str, requirements: Sequence[str]) -> Path:
    python = [sys.implementation.cache_tag, platform.machine(), platform.system()]
    return cache_dir() / kind / content_hash([python, sorted(requirements)])


def _download(requirements: Sequence[str], folder: Path) -> None:
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), "--", *requirements)


def _unpack(requirements: Sequence[str], folder: Path) -> None:
    wheels = fetch(requirements)
    offline = ["--no-index", "--find-links", str(wheels), "--no-deps", "--target", str(folder)]
    _pip("install", *offline, "--", *requirements)


def _pip(*arguments: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "--no-input",
        *arguments,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        raise WerError(f"pip took longer than {_FETCH_S} s. Check the network and try again") from None
    if "No module named pip" in done.stderr:
        raise WerError(
            f"{sys.executable} has no pip, which fetches the packages of a sandbox. "
            "Add it: python -m ensurepip, or uv pip install pip"
        )
    if done.returncode != 0:
        wanted = ", ".join(arguments[arguments.index("--") + 1 :])
        raise WerError(
            f"pip could not get {wanted}. The network is needed once; check it and the pins. "
            f"pip said:\n{done.stderr.strip()[-2000:]}"
        )
