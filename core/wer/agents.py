"""Agents that users bring in the place of a model: told apart by how ``--executor`` names them.

A model is ``provider/name[@url]``. An agent of the user's own is a function (``agent.py:answer`` or
``package.module:answer``), a program (``command: python agent.py``) or an endpoint (``http://...``).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Literal, TypeAlias

from wer import references

Kind: TypeAlias = Literal["function", "command", "http"]

COMMAND = "command:"
_URL = re.compile(r"https?://", re.IGNORECASE)
_FUNCTION = re.compile(r".+\.py(:.*)?|[^\W\d]\w*(\.\w+)*:[\w.<>]*")


def kind_of(spec: str) -> Kind | None:
    """What an executor's name stands for; None where it is a model's."""
    if spec.startswith(COMMAND):
        return "command"
    if _URL.match(spec):
        return "http"
    return "function" if _FUNCTION.fullmatch(spec) else None


def is_own(spec: str) -> bool:
    """Whether an executor's name is that of an agent of the user's own, and no model's."""
    return kind_of(spec) is not None


def target(spec: str) -> str:
    """What the kind is to find: the reference, the URL, or the command line without its prefix."""
    return spec.removeprefix(COMMAND).strip()


def located(spec: str, folder: Path) -> str:
    """Make a name mean the same from any folder: the paths of a function's file, and of a command's files, in full.

    Args:
        folder: What a relative path starts from.
    """
    kind = kind_of(spec)
    if kind == "command":
        return _located_command(spec, folder)
    return references.located(spec, folder) if kind == "function" else spec


def called(spec: str) -> str:
    """What reports call an executor: as it is written, without the folders of a function's or a command's files."""
    kind = kind_of(spec)
    if kind == "command":
        return " ".join(Path(word).name if word.startswith("/") else word for word in spec.split(" "))
    return Path(spec).name if kind == "function" else spec


def _located_command(spec: str, folder: Path) -> str:
    """Words that name a file, or that are written as a path to something that is there, become absolute."""
    try:
        words = shlex.split(target(spec))
        full = [_full(word, folder) for word in words]
    except (OSError, ValueError):
        return spec  # whoever makes the agent says what is wrong
    return spec if full == words else f"{COMMAND} {shlex.join(full)}"


def _full(word: str, folder: Path) -> str:
    path = folder / word
    return str(path.absolute()) if path.is_file() or ("/" in word and path.exists()) else word
