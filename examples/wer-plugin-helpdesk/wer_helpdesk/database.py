"""The desk's data: SQLite in memory, and what has changed in it since the episode began."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Rows = Mapping[str, Mapping[str, Any]]
"""Rows of a table by their id, each with the columns that matter."""

_SCHEMA = Path(__file__).with_name("schema.sql")
_CHANGING = ("people", "members", "devices", "tickets")


class Database:
    """Rows by table and id. Table names come from the desk's own code and tasks, never from a model."""

    def __init__(self, changes: Mapping[str, Rows]) -> None:
        """Make the database of ``schema.sql``, then change some rows of it."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.executescript("PRAGMA foreign_keys = ON;" + _SCHEMA.read_text("utf-8"))
        for table, rows in changes.items():
            for name, columns in rows.items():
                self.put(table, name, **columns)
        self._before = self._tables()

    def rows(self, query: str, *values: str) -> list[Row]:
        """Run a query."""
        return [dict(row) for row in self._connection.execute(query, values)]

    def find(self, table: str, name: str) -> Row | None:
        """Give a row, or None."""
        rows = self.rows(f'SELECT * FROM "{table}" WHERE id = ?', name)  # noqa: S608
        return rows[0] if rows else None

    def get(self, table: str, name: str) -> Row:
        """Give a row.

        Raises:
            LookupError: There is none.
        """
        row = self.find(table, name)
        if row is None:
            raise LookupError(f"there is no {name!r} among the {table}")
        return row

    def put(self, table: str, name: str, **columns: Any) -> None:
        """Change a row, or make it."""
        names = [f'"{column}"' for column in columns]
        if self.find(table, name):
            statement = f'UPDATE "{table}" SET {", ".join(f"{column} = ?" for column in names)} WHERE id = ?'  # noqa: S608
        else:
            marks = ", ".join("?" for _ in (*names, "id"))
            statement = f'INSERT INTO "{table}" ({", ".join((*names, "id"))}) VALUES ({marks})'  # noqa: S608
        self._connection.execute(statement, (*columns.values(), name))

    def changes(self) -> dict[str, Rows]:
        """Say what differs from the beginning, by table, row and column. No tool deletes a row."""
        after = self._tables()
        changed = {table: _changed(self._before[table], after[table]) for table in _CHANGING}
        return {table: rows for table, rows in changed.items() if rows}

    def _tables(self) -> dict[str, Rows]:
        return {
            table: {row.pop("id"): row for row in self.rows(f"SELECT * FROM {table}")}  # noqa: S608
            for table in _CHANGING
        }


def _changed(before: Rows, after: Rows) -> Rows:
    changed = {}
    for name, row in after.items():
        old = before.get(name, {})
        columns = {column: value for column, value in row.items() if value != old.get(column)}
        if columns:
            changed[name] = columns
    return changed
