"""A base image from this machine's own Python, for when no registry can be reached.

Everything keeps its path, so that the interpreter finds its library as it does here:
the interpreter, its standard library, and the shared libraries that these link to.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from wer.records import content_hash

_PASSWD = b"root:x:0:0::/:/sbin/nologin\nnobody:x:65534:65534::/nonexistent:/sbin/nologin\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"
_UNUSED = {"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip"}
_UNUSED |= {"site-packages", "dist-packages", "pydoc_data"}
# Native wheels may link to any of these, though Python itself does not.
_C_LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread|util|resolv|nss_files|nss_dns|gcc_s|stdc\+\+|z)\.so\.\d+")


def interpreter() -> Path:
    """The interpreter inside the image, without the links of a virtual environment."""
    return Path(os.path.realpath(sys.executable))


def identity() -> str:
    """Name what `write` would write, without reading it all."""
    return content_hash([sys.version, str(interpreter()), [str(library) for library in _libraries()]])


def library_path() -> str:
    """Where the image's loader must look, for ``LD_LIBRARY_PATH``."""
    return ":".join(sorted({str(library.parent) for library in _libraries()}))


def write(archive: IO[bytes]) -> None:
    """Write the root file system as a tar archive."""
    with tarfile.open(fileobj=archive, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        made: set[Path] = set()
        for path in (interpreter(), *_libraries(), *_standard_library()):
            _add(tar, path, made)
        for name, content in (("etc/passwd", _PASSWD), ("etc/group", _GROUP)):
            _folder(tar, Path("/etc"), made)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
        _folder(tar, Path("/tmp"), made)  # noqa: S108 - the image's own


def _standard_library() -> Iterator[Path]:
    for folder, inner, files in os.walk(sysconfig.get_path("stdlib")):
        inner[:] = sorted(name for name in inner if name not in _UNUSED and not name.startswith("config-"))
        for name in sorted(files):
            if not name.startswith("_tkinter"):
                yield Path(folder, name)


def _libraries() -> list[Path]:
    """Shared libraries of the interpreter and its extensions, by the paths that the loader uses."""
    extensions = Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("*.so")
    found = {path for program in (interpreter(), *extensions) for path in _linked(program)}
    for folder in {path.parent for path in found if path.name.startswith("libc.so")}:
        found |= {path for path in folder.iterdir() if _C_LIBRARIES.fullmatch(path.name)}
    return sorted(found)


def _linked(program: Path) -> set[Path]:
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def _add(tar: tarfile.TarFile, path: Path, made: set[Path]) -> None:
    _folder(tar, path.parent, made)
    real = path.resolve()
    entry = tarfile.TarInfo(str(path).lstrip("/"))
    entry.size = real.stat().st_size
    entry.mtime = real.stat().st_mtime
    entry.mode = 0o755 if os.access(real, os.X_OK) else 0o644
    with real.open("rb") as content:
        tar.addfile(entry, content)


def _folder(tar: tarfile.TarFile, folder: Path, made: set[Path]) -> None:
    """Open to all, though on the host it may lie under a closed home folder."""
    if folder in made or folder == folder.parent:
        return
    _folder(tar, folder.parent, made)
    made.add(folder)
    entry = tarfile.TarInfo(str(folder).lstrip("/"))
    entry.type = tarfile.DIRTYPE
    entry.mode = 0o755
    tar.addfile(entry)
