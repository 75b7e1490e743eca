"""Which code of the user's goes into the sandbox with a class, and what it is by content."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from wer.errors import DomainError


@frozen(kw_only=True)
class Source:
    """The code of a class.

    Attributes:
        file: That defines it.
        name: ``module:Class``, as the sandbox imports it.
        packages: As in `wer.records.SandboxSpec`: its package, or its file with the neighbours that
            it imports.
    """

    file: Path
    name: str
    packages: tuple[str, ...]


def source_of(cls: type) -> Source:
    """Find a class's code.

    Raises:
        DomainError: It is in no file, or inside a function.
    """
    module = sys.modules.get(cls.__module__)
    written = getattr(module, "__file__", None)
    if written is None or "<locals>" in cls.__qualname__:
        raise DomainError(
            f"{cls.__qualname__} is defined in a notebook, a console or a function, and a sandbox imports classes from "
            "files. Put it at the top level of a file, such as shop.py, and import it from there."
        )
    file = Path(written).resolve()
    top = cls.__module__.partition(".")[0]
    if top != cls.__module__ or file.name == "__init__.py":
        return Source(file=file, name=f"{cls.__module__}:{cls.__qualname__}", packages=(top,))
    packages = tuple(map(str, _neighbours(file)))
    return Source(file=file, name=f"{file.stem}:{cls.__qualname__}", packages=packages)


def folder_of(function: Callable[..., Any]) -> Path:
    """The folder of the file that a function is written in; of a notebook or a console, the working directory."""
    file = getattr(sys.modules.get(getattr(function, "__module__", "")), "__file__", None)
    return Path.cwd() if file is None else Path(file).resolve().parent


def digest(*paths: Path) -> str:
    """Hash code, a file or a folder each: Python by its syntax tree, so that comments and layout don't count."""
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"{file.name}\0".encode())
                found.update(_tree(file) if file.suffix == ".py" else file.read_bytes())
    return found.hexdigest()[:16]


def digest_of(function: Callable[..., Any]) -> str:
    """Hash the module that a function is written in, and what it imports from beside it; in a notebook, the
    function alone.
    """
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    if file is not None:
        return digest(*_neighbours(Path(file)))
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]
    except (OSError, TypeError) as error:
        raise DomainError(f"the check {function!r} has no source: {error}. Define it in a file.") from error


def _neighbours(file: Path) -> Iterator[Path]:
    """A lone file, and the files and packages beside it that it imports, each once."""
    found = [file]
    for each in found:
        yield each
        for name in _imported(each) if each.is_file() else ():
            for beside in (file.parent / f"{name}.py", file.parent / name):
                is_code = beside.is_file() or (beside / "__init__.py").is_file()
                if is_code and beside not in found:
                    found.append(beside)


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _tree(file: Path) -> bytes:
    """A file's syntax; of the running program what it defines, so that a run goes on once ``resume`` is in its call."""
    tree = ast.parse(file.read_bytes())
    program = getattr(sys.modules["__main__"], "__file__", None)
    if program is not None and Path(program).resolve() == file.resolve():
        tree.body = [node for node in tree.body if _defines(node)]
    return ast.dump(tree).encode()


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(inner, ast.Call | ast.Await) for inner in ast.walk(node))
    return isinstance(
        node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    )
