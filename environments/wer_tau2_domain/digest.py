"""The hash of a large database, made anew only for the entries that an episode has reached.

Hashing a whole database is most of an episode's cost: the package dumps thousands of records,
and in a forked process reading each one copies its page. Here the text of every entry is made
once, before the fork; an episode makes it again for the entries that its tools have touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any


class Table(dict[str, Any]):
    """A table that knows which of its entries may have been changed: those that were handed out.

    By ``[]``, ``get``, ``values`` and ``items``: the package's tools use no other way.
    """

    def __init__(self, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self._texts = {key: _text(entry) for key, entry in entries.items()}

    def __getitem__(self, key: str) -> Any:
        self._texts.pop(key, None)
        return super().__getitem__(key)

    def __setitem__(self, key: str, entry: Any) -> None:
        self._texts.pop(key, None)
        super().__setitem__(key, entry)

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        self._texts.pop(key, None)
        return super().get(key, default)

    def values(self) -> Any:
        """As a dict's."""
        self._texts.clear()
        return super().values()

    def items(self) -> Any:
        """As a dict's."""
        self._texts.clear()
        return super().items()

    def texts(self) -> Iterator[str]:
        """The table as JSON with sorted keys, in pieces."""
        opening = "{"
        for key in sorted(self):
            text = self._texts.get(key)
            yield f"{opening}{json.dumps(key)}: {_text(super().__getitem__(key)) if text is None else text}"
            opening = ", "
        yield "}" if self else "{}"


def watch(tools: Any) -> None:
    """Make a toolkit's ``get_db_hash`` cheap; its value stays the package's.

    For databases of nothing but tables. One that an episode replaces is hashed by the package.
    """
    tables = dict(tools.db)
    if all(isinstance(table, dict) for table in tables.values()):
        vars(tools.db).update({name: Table(table) for name, table in tables.items()})
        whole = tools.get_db_hash
        tools.get_db_hash = lambda: _digest(dict(tools.db)) or whole()


def _digest(tables: dict[str, Any]) -> str | None:
    """The hash of a database's JSON with sorted keys; None where a table isn't watched."""
    if not all(isinstance(table, Table) for table in tables.values()):
        return None
    hashed, opening = hashlib.sha256(), "{"
    for name in sorted(tables):
        hashed.update(f"{opening}{json.dumps(name)}: ".encode())
        for text in tables[name].texts():
            hashed.update(text.encode())
        opening = ", "
    hashed.update(b"}")
    return hashed.hexdigest()


def _text(entry: Any) -> str:
    return json.dumps(entry.model_dump(), sort_keys=True, default=str)
