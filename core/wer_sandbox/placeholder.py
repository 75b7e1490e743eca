"""Stands for ``wer`` inside a sandbox, where it is not installed, so that a user's module can be imported there.

A module that defines a domain also says ``@wer.hookimpl``, ``wer.Domain(...)`` and maybe
``wer.refine(...)``. In the sandbox none of that does anything: only `State` is real.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from wer_sandbox.state import State


class Inert:
    """Takes every argument, has every attribute, and gives back whatever it decorates."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *given: Any, **_: Any) -> Any:
        """Give back what is decorated."""
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __getattr__(self, name: str) -> Inert:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return State if name == "State" else Inert


class _Finder(MetaPathFinder, Loader):
    """Finds ``wer`` and everything below it; asked last, so that an installed WER comes first."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Find nothing but ``wer``."""
        if name.partition(".")[0] != "wer":
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a module that has every attribute."""
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def install() -> None:
    """Let ``import wer`` succeed from now on."""
    sys.meta_path.append(_Finder())
