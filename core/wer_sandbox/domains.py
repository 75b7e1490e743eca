"""Loading a domain and calling it: the only place where sandboxed code is reached by name."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str) -> Any:
    """Import ``module:factory`` and make the domain object.

    Raises:
        TypeError: The object does not say what it exposes.
    """
    module, _, factory = name.partition(":")
    domain = getattr(importlib.import_module(module), factory)()
    exposed = getattr(type(domain), "exposed", None)
    if not isinstance(exposed, tuple) or not all(isinstance(each, str) for each in exposed):
        raise TypeError(f"{name}: the class {type(domain).__name__} needs exposed = ('method', ...)")
    missing = [each for each in exposed if not callable(getattr(domain, each, None))]
    if missing:
        raise TypeError(f"{name}: {type(domain).__name__} exposes {missing}, which are no methods of it")
    return domain


def call(domain: Any, method: Any, params: Any) -> Any:
    """Call one exposed method.

    Raises:
        LookupError: The method is not exposed.
        Exception: Whatever the domain raises.
    """
    exposed = type(domain).exposed
    if method not in exposed:
        raise LookupError(f"no method {method!r} (exposed: {', '.join(exposed)})")
    return getattr(domain, method)(**params)
