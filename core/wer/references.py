"""Objects that users name by where they are written: ``shop.py:shop``, or ``package.module:shop``."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from wer.errors import ConfigError, WerError
from wer.tables import nearest


def is_reference(name: str) -> bool:
    """Whether a name is one of these, and none that a plugin offers."""
    return ":" in name or name.endswith(".py")


def located(name: str, folder: Path) -> str:
    """Make a reference mean the same from any folder: the path of a file becomes absolute.

    Args:
        folder: What a relative path starts from.
    """
    place, colon, attribute = name.rpartition(":")
    return f"{(folder / place).resolve()}{colon}{attribute}" if place.endswith(".py") else name


def short(name: str) -> str:
    """What reports call it: the object's own name."""
    return name.rpartition(":")[2] if is_reference(name) else name


def reference_to(thing: Any, name: str = "") -> str:
    """Name an object that a program holds, so that a configuration can: `resolve` gives it back in this process.

    Args:
        name: For an object that has none of its own.

    Returns:
        Its file or module and name where another process finds it too; else one that only this process knows.
    """
    path = getattr(thing, "__qualname__", None) or name
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    there = (
        path and functools.reduce(lambda at, part: getattr(at, part, None), path.split("."), module) is thing
    )
    found = reference_in(module, path) if module is not None and there else live(path or type(thing).__name__)
    while (
        not there and _kept.get(found, thing) is not thing
    ):  # a name of its own, as two closures have one name
        found += "_"
    _kept[found] = thing
    return found


def reference_in(module: ModuleType, path: str) -> str:
    """Name what a module has under a path; of the program itself, that is by a name that only it knows."""
    if module.__name__ == _LIVE:
        return live(path)
    file = getattr(module, "__file__", None)
    alone = file is not None and "." not in module.__name__ and "__path__" not in vars(module)
    return f"{Path(str(file)).resolve() if alone else module.__name__}:{path}"


def live(name: str) -> str:
    """The reference to an object of this program that no other process finds."""
    return f"{_LIVE}:{name}"


_LIVE = "__main__"
_kept: dict[str, Any] = {}


def resolve(name: str) -> Any:
    """Import what is named, or give what `reference_to` named.

    Raises:
        ConfigError: There is no such file, module or object; or its import fails, with the cause.
    """
    if name in _kept:
        return _kept[name]
    if name.startswith(f"{_LIVE}:"):
        raise ConfigError(
            f"{name.partition(':')[2]!r} was an object of the program that began this, and is in no file that can be "
            "imported. Go on from that program; or put it into a file of its own, such as agent.py, and name it "
            "agent.py:NAME."
        )
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ConfigError(f"{name!r} names a file and no object in it. Write {name.strip(':')}:NAME.")
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError:
        known = [key for key in vars(module) if not key.startswith("_")]
        hint = nearest(attribute, known) or "."
        raise ConfigError(
            f"{place} has no {attribute!r}{hint} It has {', '.join(known) or 'nothing'}."
        ) from None


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except WerError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"cannot import {name!r}: {type(error).__name__}: {error}. Install it, or name its file: "
            "path/to/file.py:NAME."
        ) from error


def _file(path: Path) -> ModuleType:
    """Run a file as a module, once a content; its neighbours can be imported, as for a script."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error}. Check the path before the colon.") from error
    name = f"{path.stem}@{hashlib.sha256(str(path).encode()).hexdigest()[:8]}{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # a path that ends in .py has both
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except WerError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{path} can't be imported: {type(error).__name__}: {error}. Mend it.") from error
    return module
