"""What a spec puts on a sandbox's module path: its requirements, and code copied from the host.

Both are folders of the cache, named by content and never changed once they are there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
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
        SandboxError: With ``cause="start"``: a package is not on the host, two are of one name,
            or a requirement could not be fetched or installed, with the remedy.
    """
    sources = _each_once(spec)
    name = content_hash([[each.name, digest(each)] for each in sources])
    code = wheels.once(cache_dir() / "sandboxes" / f"code-{name}", lambda folder: _copy(sources, folder))
    if not spec.requirements:
        return [code]
    try:
        return [code, wheels.install(spec.requirements)]
    except WerError as error:
        raise SandboxError(f"the sandbox {spec.name!r} cannot be built: {error}", cause="start") from error


def source(name: str) -> Path:
    """Find what an entry of ``SandboxSpec.packages`` names: a folder, or a single file.

    Raises:
        SandboxError: It is not on the host.
    """
    if os.sep in name:
        path = Path(os.path.abspath(name))  # noqa: PTH100  (a link keeps its name, which is imported)
        if path.exists():
            return path
        raise SandboxError(
            f"the package {name!r} is not there (expected a folder or a file). Check its path, which starts from "
            "the working directory unless it is absolute",
            cause="start",
        )
    found = importlib.util.find_spec(name)
    if found is not None and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    if found is not None and found.origin is not None and found.has_location:
        return Path(found.origin)
    raise SandboxError(
        f"the package {name!r} is not installed (expected a module of the host). "
        "Install the plugin that it belongs to, or write the path of a folder with a slash: './shop'",
        cause="start",
    )


def _each_once(spec: SandboxSpec) -> list[Path]:
    """The code of a spec; what is named twice, such as a class's own package, is copied once.

    Raises:
        SandboxError: Two folders or files would be copied to one name.
    """
    found: dict[str, Path] = {}
    for each in (source(name) for name in (_SERVER, *spec.packages)):
        taken = found.setdefault(each.name, each)
        if not taken.samefile(each):
            raise SandboxError(
                f"the sandbox {spec.name!r} wants two packages of the name {each.name!r}: {str(taken)!r} and "
                f"{str(each)!r}. A sandbox imports by name: rename one, or leave it out of packages",
                cause="start",
            )
    return list(found.values())


def digest(source: Path) -> str:
    """Hash the files of a folder, or a file, with their names."""
    found = hashlib.sha256()
    for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _copy(sources: list[Path], folder: Path) -> None:
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, folder / source.name, ignore=_IGNORED)
        else:
            shutil.copy(source, folder / source.name)
