"""What a spec puts on a sandbox's module path: its requirements, and code copied from the host.

Both are folders of the cache, named by content and never changed once they are there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

from wer import wheels
from wer.errors import SandboxError, WerError
from wer.paths import cache_dir
from wer.records import SandboxSpec, content_hash

_SERVER = "wer_sandbox"
_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def folders(spec: SandboxSpec) -> list[Path]:
    """Make the module path of a spec: the server with the spec's packages, then its requirements.

    Raises:
        SandboxError: With ``cause="start"``: a package is not on the host, or a
            requirement could not be fetched or installed, with the remedy.
    """
    sources = [_source(name) for name in (_SERVER, *spec.packages)]
    name = content_hash([[source.name, _digest(source)] for source in sources])
    code = wheels.once(cache_dir() / "sandboxes" / f"code-{name}", lambda folder: _copy(sources, folder))
    if not spec.requirements:
        return [code]
    try:
        return [code, wheels.install(spec.requirements)]
    except WerError as error:
        raise SandboxError(f"the sandbox {spec.name!r} cannot be built: {error}", cause="start") from error


def _source(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise SandboxError(
            f"the package {name!r} is not installed (expected a folder with an __init__.py). "
            "Install the plugin that it belongs to",
            cause="start",
        )
    return Path(next(iter(found.submodule_search_locations)))


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _copy(sources: list[Path], folder: Path) -> None:
    for source in sources:
        shutil.copytree(source, folder / source.name, ignore=_IGNORED)
