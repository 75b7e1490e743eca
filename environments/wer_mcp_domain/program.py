"""The server's command, run as Python in this process: there is nothing else in a sandbox to start.

Importing an MCP server takes seconds. So its modules are imported once, in the worker, and each
episode's companion is a fork that only calls what the command names.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

COMMAND, PRELOAD = "WER_MCP_COMMAND", "WER_MCP_PRELOAD"
_PYTHON = ("python", "python3")


class Program:
    """One of ``SCRIPT ...`` of a requirement, ``python -m MODULE ...`` and ``python FILE ...``."""

    def __init__(self, command: Sequence[str], preload: Sequence[str]) -> None:
        self._words = list(command)
        self._preload = preload

    def load(self) -> None:
        """Import all that can be imported before the program runs.

        Raises:
            LookupError: No requirement has a script of that name.
            ImportError: A module is missing.
        """
        for name in self._preload:
            importlib.import_module(name)
        if self._words[0] not in _PYTHON:
            importlib.import_module(_script(self._words[0]).module)
        elif self._words[1] == "-m":
            importlib.import_module(self._words[2])

    def run(self) -> None:
        """Be the program, to its end.

        Raises:
            LookupError: As for `load`.
        """
        if self._words[0] not in _PYTHON:
            sys.argv = self._words
            sys.exit(_script(self._words[0]).load()())
        if self._words[1] == "-m":
            sys.argv = self._words[2:]
            runpy.run_module(self._words[2], run_name="__main__", alter_sys=True)
        else:
            sys.argv = self._words[1:]
            runpy.run_path(self._words[1], run_name="__main__")


def from_environ() -> Program:
    """The program that the sandbox's environment variables name."""
    return Program(json.loads(os.environ[COMMAND]), json.loads(os.environ.get(PRELOAD, "[]")))


def _script(name: str) -> EntryPoint:
    scripts = {point.name: point for point in entry_points(group="console_scripts")}
    if name not in scripts:
        known = ", ".join(sorted(scripts)) or "none"
        raise LookupError(
            f"no requirement has a program named {name!r} (programs of the requirements: {known}). "
            "Name one of them, or write python -m MODULE or python FILE"
        )
    return scripts[name]
