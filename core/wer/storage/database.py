"""The SQLite file under a store: opened, checked, read, and written a transaction a finished thing.

``kill -9`` loses nothing that was finished.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.dialects.sqlite import insert

from wer.errors import StoreError
from wer.storage.tables import META, SCHEMA, schema


class Database:
    """The file of a store, ready to be asked and written.

    Args:
        create: Make it where there is none.
        read_only: Leave the file as it is, whatever is asked: for those who only look on.
    """

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        if not create and not path.is_file():
            raise StoreError(f"no store at {str(path)!r}. Name a run folder that has a wer.sqlite in it.")
        self._uri = _looked_at(path) if read_only else path.absolute().as_uri()
        self._engine = _looking_on(self._uri) if read_only else sa.create_engine(f"sqlite:///{path}")
        self._read_only = read_only
        self._hot = threading.RLock()
        self._db: sqlite3.Connection | None = None
        sa.event.listen(self._engine, "connect", _pragmas)
        weakref.finalize(self, self._engine.dispose)
        try:
            self._prepare(path)
        except sa.exc.DatabaseError as error:
            remedy = (
                "Try again if a process is writing to it; if it is on a read-only disk, look at a copy of the run "
                "folder; otherwise it is damaged."
                if read_only
                else "Free space there, or choose another place with --runs."
            )
            raise StoreError(f"cannot use {str(path)!r} as a store: {error.orig}. {remedy}") from error

    def _prepare(self, path: Path) -> None:
        """Make the tables of an empty file, and refuse a foreign one without changing it."""
        with self._engine.begin() as db:
            tables = sa.inspect(db).get_table_names()
            if not tables and self._read_only:
                raise StoreError(f"nothing is stored in {str(path)!r} yet. Wait until the run has begun.")
            if not tables:
                _create(db)
            elif schema.name not in tables:
                raise StoreError(f"{str(path)!r} is a database, but not of a run. Name a run folder of WER.")
            version = db.scalar(sa.select(schema.c.version))
        if version != SCHEMA:
            raise StoreError(
                f"this run was written with store schema {version}, and this WER reads schema {SCHEMA}. "
                "Read it with the version of WER that about.toml names."
            )

    def close(self) -> None:
        """Close the connections; everything is already on disk."""
        with self._hot:
            if self._db is not None:
                self._db.close()
            self._db = None
        self._engine.dispose()

    def ask(self, question: str, **values: object) -> Sequence[sa.Row[Any]]:
        """The rows that answer a question in SQL over the tables, for views that must not read all.

        Args:
            values: Of the question's ``:name``s; a list stands for the members of ``in :name``.
        """
        listed: list[sa.BindParameter[Any]] = [
            sa.bindparam(name, expanding=True) for name, value in values.items() if isinstance(value, list)
        ]
        with self._engine.begin() as db:
            return db.execute(sa.text(question).bindparams(*listed), values).all()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open the one transaction of a finished thing: every write goes through here.

        Raises:
            StoreError: The disk is full, or the file can't be written.
        """
        try:
            with self._engine.begin() as db:
                yield db
        except sa.exc.OperationalError as error:
            raise _unwritable(error.orig) from error

    def _put(self, *rows: tuple[sa.Table, Mapping[str, object]]) -> None:
        """Insert rows that aren't there yet, all in one transaction."""
        self._write(*((_new(table), _plain(table, values)) for table, values in rows))

    def _write(self, *statements: tuple[str, Mapping[str, object]]) -> None:
        """Do what comes with every rollout and model call in one transaction, on a connection of its own.

        SQLAlchemy's way to the same statement costs many times its execution.

        Raises:
            StoreError: As for `_writing`.
        """
        with self._hot:
            try:
                db = self._connection()
                with db:
                    db.execute("begin immediate")
                    for statement, values in statements:
                        db.execute(statement, values)
            except sqlite3.OperationalError as error:
                raise _unwritable(error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._db.close)
            _pragmas(self._db, None)
            self._db.execute(f"pragma query_only={'on' if self._read_only else 'off'}")
        return self._db

    def _one(self, query: sa.Select[Any]) -> str:
        with self._engine.begin() as db:
            text = db.scalar(query)
        if text is None:
            raise StoreError("the store lacks a row that another row names: the run folder is damaged")
        return str(text)


def _looked_at(path: Path) -> str:
    """The address of a store that is only read.

    SQLite wants to lay a log and its index beside the file, even to read, and takes them away again if it may.
    Where it may not, as on a read-only disk, and there is no log, nobody is writing: the file alone is the whole.
    """
    uri = path.absolute().as_uri()
    if os.access(path.parent, os.W_OK):
        return f"{uri}?mode=rw"
    return f"{uri}?mode=ro{'' if path.with_name(f'{path.name}-wal').exists() else '&immutable=1'}"


def _looking_on(uri: str) -> sa.Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        connection.execute("pragma query_only=on")
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # half characters in JSON
        return connection

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)


def _create(db: sa.Connection) -> None:
    """Make all tables at once, or none: another process may be at it."""
    db.exec_driver_sql("pragma journal_mode=wal")
    db.exec_driver_sql("begin immediate")
    META.create_all(db)
    if db.scalar(sa.select(schema.c.version)) is None:
        db.execute(schema.insert().values(version=SCHEMA))


def insert_new(db: sa.Connection, *rows: tuple[sa.Table, Mapping[str, object]]) -> None:
    """Insert rows that aren't there yet, as part of a transaction."""
    for table, values in rows:
        db.execute(insert(table).values(**values).on_conflict_do_nothing())


@cache
def _new(table: sa.Table) -> str:
    """A row's insertion as SQL with a ``:name`` a column."""
    statement = insert(table).on_conflict_do_nothing()
    return str(statement.compile(dialect=sqlite_dialect(paramstyle="named")))


def _plain(table: sa.Table, values: Mapping[str, object]) -> Mapping[str, object]:
    """A value for every column, as SQLite has it."""
    row = {column.name: values.get(column.name) for column in table.columns}
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()}


def _unwritable(error: object) -> StoreError:
    return StoreError(
        f"cannot write to the run's store ({error}). Everything finished before is kept: free disk space or "
        "mend permissions, then go on with --resume."
    )


def _pragmas(connection: object, _: object) -> None:
    with suppress(AttributeError):
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute("pragma busy_timeout=5000")
        cursor.execute("pragma synchronous=normal")
        cursor.close()
