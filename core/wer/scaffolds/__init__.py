"""New plugins: a complete package of each kind, written from the templates beside this file.

A template is a file that ends in ``.tmpl``, filled in by `string.Template`. Those in ``common`` are
part of every package; a folder named ``module`` becomes the package's own; ``about.md`` goes into its
README.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from string import Template
from typing import Literal

from wer.errors import PluginError
from wer.plugins import Row

Kind = Literal["domain", "verifier", "optimizer", "executor", "model"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 30
_TEMPLATE = ".tmpl"


def write(name: str, kind: Kind, *, into: Path, installed: Iterable[Row]) -> Path:
    """Write the package ``wer-plugin-NAME`` and give its folder.

    Args:
        name: Of the plugin and of what it offers.
        into: The folder is made below it.
        installed: What there is already, whose names are taken.

    Raises:
        PluginError: The name can't be used, or the folder is there already; nothing was written.
    """
    _check(name, installed)
    words = {
        "name": name,
        "module": f"wer_{name}",
        "distribution": f"wer-plugin-{name.replace('_', '-')}",
        "upper": name.upper(),
        "kind": kind,
    }
    about = (files(__name__) / kind / "about.md").read_text("utf-8")
    words["about"] = Template(about).substitute(words)
    folder = into / words["distribution"]
    if folder.exists():
        raise PluginError(f"{folder} exists already. Choose another name, or --into another folder.")
    for path, text in (*_filled("common", words), *_filled(kind, words)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def start(folder: Path) -> tuple[Path, ...]:
    """Write ``wer.toml``, ``tasks.jsonl`` and ``check.py``: own tasks without a package.

    Raises:
        PluginError: One of them is there already; nothing was written.
    """
    found = {folder / path: text for path, text in _filled("start", {"module": ""})}
    there = [path.name for path in found if path.exists()]
    if there:
        raise PluginError(f"{folder} has {', '.join(there)} already. Give another folder: wer init FOLDER.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in found.items():
        path.write_text(text, "utf-8")
    return tuple(found)


def _check(name: str, installed: Iterable[Row]) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise PluginError(
            f"{name!r} can't be the name of a plugin. Write lower-case letters and digits, beginning with a letter, "
            f"with single underscores between words, as in help_desk; {_LONGEST} at most."
        )
    for row in installed:
        if name in (row.plugin, row.name):
            kind = row.kind if name == row.name else "plugin"
            raise PluginError(
                f"{row.distribution or row.plugin} has the {kind} {name!r} already. Choose another name."
            )
    if importlib.util.find_spec(f"wer_{name}") is not None:
        raise PluginError(f"there is a package 'wer_{name}' already. Choose another name.")


def _filled(kind: str, words: dict[str, str]) -> Iterator[tuple[PurePosixPath, str]]:
    """Fill in the templates of one folder; their paths are those in the new package."""
    for path, template in _templates(files(__name__) / kind, PurePosixPath()):
        parts = (words["module"] if part == "module" else part for part in path.parts)
        yield PurePosixPath(*parts), Template(template.read_text("utf-8")).substitute(words)


def _templates(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, path / entry.name)
        elif entry.name.endswith(_TEMPLATE):
            yield path / entry.name.removesuffix(_TEMPLATE), entry
