"""A run's memory: one SQLite file that only the driver writes, a transaction a finished thing.

``kill -9`` loses nothing that was finished, and a replay of the same run finds here
what it would otherwise pay for again. Rows are JSON of the records plus the columns
that questions are asked by.
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

from wer.codec import from_json, to_json
from wer.errors import StoreError
from wer.records import (
    Candidate,
    Experience,
    Json,
    RefinementState,
    Reward,
    Rollout,
    Skill,
    Task,
    Usage,
)

SCHEMA = 1

_meta = sa.MetaData()
_schema = sa.Table("schema", _meta, sa.Column("version", sa.Integer, nullable=False))
_tasks = sa.Table(
    "tasks",
    _meta,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("id", sa.String, nullable=False),
    sa.Column("domain", sa.String, nullable=False),
    sa.Column("split", sa.String, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
    sa.Column("expect", sa.Text),
)
_skills = sa.Table(
    "skills", _meta, sa.Column("id", sa.String, primary_key=True), sa.Column("json", sa.Text, nullable=False)
)
_rollouts = sa.Table(
    "rollouts",
    _meta,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, nullable=False, index=True),
    sa.Column("skill_id", sa.String, nullable=False, index=True),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("verifier", sa.String, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
)
_states = sa.Table(
    "states",
    _meta,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, nullable=False),
    sa.Column("skill_id", sa.String, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("parent", sa.String),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("phase", sa.Integer, nullable=False),
)
_candidates = sa.Table(
    "candidates",
    _meta,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("state_id", sa.String, primary_key=True),
    sa.Column("index", sa.Integer, primary_key=True),
    sa.Column("id", sa.String, nullable=False, index=True),
    sa.Column("json", sa.Text, nullable=False),
    sa.Column("rollouts", sa.JSON),
    sa.Column("reward", sa.Text),
)
_documents = sa.Table(
    "documents",
    _meta,
    sa.Column("purpose", sa.String, primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)
_results = sa.Table(
    "results",
    _meta,
    sa.Column("condition", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("rollout", sa.String, nullable=False),
)
_spend = sa.Table(
    "spend", _meta, sa.Column("role", sa.String, primary_key=True), sa.Column("json", sa.Text, nullable=False)
)
_faults = sa.Table(
    "faults",
    _meta,
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("place", sa.String, primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
)
_times = sa.Table(
    "times",
    _meta,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("seconds", sa.Float, nullable=False),
)
_metrics = sa.Table(
    "metrics",
    _meta,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("json", sa.JSON, nullable=False),
)

_FOUND = sa.select(_rollouts.c.json).where(_rollouts.c.key == sa.bindparam("key"))
_SPEND = "insert into spend (role, json) values (:role, :json) on conflict (role) do update set json = :json"


class Store:
    """The ``wer.sqlite`` of one run folder.

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
        self._spent: dict[str, Usage] | None = None
        self._there: set[str] = set()
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
            elif _schema.name not in tables:
                raise StoreError(f"{str(path)!r} is a database, but not of a run. Name a run folder of WER.")
            version = db.scalar(sa.select(_schema.c.version))
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
            self._db = self._spent = None
        self._engine.dispose()

    def ask(self, question: str, **values: object) -> Sequence[sa.Row[Any]]:
        """The rows that answer a question in SQL, over the tables above: for views that must not read all.

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

    # Tasks and what verifiers expect of them.

    def put_task(self, task: Task) -> None:
        """Store a task once; a task that is there already is not written again."""
        self._put(_task_row(task))

    def task(self, key: str) -> Task:
        """The task of a key.

        Raises:
            StoreError: A row names it and it is not there: the run folder is damaged.
        """
        return from_json(self._one(sa.select(_tasks.c.json).where(_tasks.c.key == key)), Task)

    def put_expect(self, task: Task, expect: Json) -> None:
        """Store what the verifier compares a stored task with: judging needs no sandbox ever after."""
        with self._writing() as db:
            db.execute(_tasks.update().where(_tasks.c.key == task.key).values(expect=json.dumps(expect)))

    def expect(self, task_key: str) -> tuple[Json] | None:
        """The stored expectation in a tuple of one, or None when it was never made."""
        with self._engine.begin() as db:
            text = db.scalar(sa.select(_tasks.c.expect).where(_tasks.c.key == task_key))
        return None if text is None else (json.loads(text),)

    def marks(self) -> Sequence[str]:
        """Remarks that the measured tasks carry, each once."""
        query = sa.select(_tasks.c.json).where(_tasks.c.key.in_(sa.select(_results.c.task_key)))
        with self._engine.begin() as db:
            found = [from_json(text, Task) for text in db.scalars(query)]
        return tuple(dict.fromkeys(mark for task in found for mark in task.marks))

    # Skills and rollouts.

    def put_skill(self, skill: Skill) -> None:
        """Store a skill once, under the hash of its content."""
        self._put(_skill_row(skill))

    def skill(self, skill_id: str) -> Skill:
        """The skill of an id.

        Raises:
            StoreError: A row names it and it is not there: the run folder is damaged.
        """
        return from_json(self._one(sa.select(_skills.c.json).where(_skills.c.id == skill_id)), Skill)

    def put_rollout(self, rollout: Rollout, *, task: Task, skill: Skill, verifier: str, tries: int) -> None:
        """Store a finished rollout with its task and skill, all or nothing."""
        row = {
            "key": rollout.key,
            "task_key": task.key,
            "skill_id": rollout.skill_id,
            "seed": rollout.seed,
            "verifier": verifier,
            "tries": tries,
            "json": to_json(rollout),
        }
        rows = [] if {task.key, skill.id} <= self._there else [_task_row(task), _skill_row(skill)]
        self._put(*rows, (_rollouts, row))
        self._there |= {task.key, skill.id}

    def rollout(self, key: str) -> Rollout | None:
        """The finished rollout of a key, which is never paid for again; None when it is still to be had."""
        with self._engine.begin() as db:
            text = db.scalar(_FOUND, {"key": key})
        return None if text is None else from_json(text, Rollout)

    def passed(self, key: str) -> bool:
        """Whether a finished rollout passed.

        Raises:
            StoreError: It is not there: the run folder is damaged.
        """
        passed = sa.func.json_extract(_rollouts.c.json, "$.verdict.passed")
        return self._one(sa.select(passed).where(_rollouts.c.key == key)) == "1"

    def rollouts(self) -> Sequence[tuple[Rollout, str, str]]:
        """Every rollout, with its task's key and its verifier's name, in order of finishing."""
        query = sa.select(_rollouts.c.json, _rollouts.c.task_key, _rollouts.c.verifier).order_by(
            sa.text("rowid")
        )
        with self._engine.begin() as db:
            return [(from_json(text, Rollout), key, verifier) for text, key, verifier in db.execute(query)]

    def count_rollouts(self) -> int:
        """How many rollouts were finished, and so paid for, in all starts of the run."""
        with self._engine.begin() as db:
            return db.scalar(sa.select(sa.func.count()).select_from(_rollouts)) or 0

    # States, candidates and experience.

    def put_state(self, state: RefinementState) -> None:
        """Store a state with its task and skill; its evidence is stored already."""
        row = {
            "id": state.id,
            "task_key": state.task.key,
            "skill_id": state.skill.id,
            "evidence": [rollout.key for rollout in state.evidence],
            "parent": state.parent,
            "round": state.round,
            "phase": state.phase,
        }
        self._put(_task_row(state.task), _skill_row(state.skill), (_states, row))

    def state(self, state_id: str) -> RefinementState:
        """A state with its task, its skill and its whole evidence, as the optimizer saw it."""
        with self._engine.begin() as db:
            row = db.execute(sa.select(_states).where(_states.c.id == state_id)).one()
        rollouts = tuple(filter(None, map(self.rollout, row.evidence)))
        return RefinementState(
            task=self.task(row.task_key),
            skill=self.skill(row.skill_id),
            evidence=rollouts,
            parent=row.parent,
            round=row.round,
            phase=row.phase,
        )

    def put_group(self, stage: str, candidates: Sequence[Candidate]) -> None:
        """Store the whole group of one state at once, so that it is there entirely or not at all."""
        self._put(
            *(
                (
                    _candidates,
                    {
                        "stage": stage,
                        "state_id": candidate.state_id,
                        "index": candidate.index,
                        "id": candidate.id,
                        "json": to_json(candidate),
                    },
                )
                for candidate in candidates
            )
        )

    def group(self, stage: str, state_id: str) -> tuple[Candidate, ...]:
        """What was written for a state in a stage, in the group's order; empty when nothing was yet."""
        here = sa.and_(_candidates.c.stage == stage, _candidates.c.state_id == state_id)
        query = sa.select(_candidates.c.json).where(here).order_by(_candidates.c.index)
        with self._engine.begin() as db:
            return tuple(from_json(text, Candidate) for text in db.scalars(query))

    def put_experience(self, stage: str, experience: Experience) -> None:
        """Store what a candidate of a written group led to: its skill, its rollouts and its reward."""
        candidate = experience.candidate
        here = sa.and_(
            _candidates.c.stage == stage,
            _candidates.c.state_id == candidate.state_id,
            _candidates.c.index == candidate.index,
        )
        values = {
            "rollouts": [rollout.key for rollout in experience.rollouts],
            "reward": to_json(experience.reward),
        }
        with self._writing() as db:
            if candidate.skill is not None:
                _insert(db, _skill_row(candidate.skill))
            db.execute(_candidates.update().where(here).values(**values))

    def experiences(self, stage: str | None = None) -> Sequence[tuple[str, Experience]]:
        """Scored candidates with their stage, in the order of writing."""
        query = sa.select(_candidates).where(_candidates.c.reward.is_not(None)).order_by(sa.text("rowid"))
        if stage is not None:
            query = query.where(_candidates.c.stage == stage)
        with self._engine.begin() as db:
            rows = db.execute(query).all()
        return [(row.stage, self._experience(row)) for row in rows]

    def _experience(self, row: sa.Row) -> Experience:  # type: ignore[type-arg]
        return Experience(
            state=self.state(row.state_id),
            candidate=from_json(row.json, Candidate),
            rollouts=tuple(filter(None, map(self.rollout, row.rollouts))),
            reward=from_json(row.reward, Reward),
        )

    # Documents that a model wrote once: drafts and merges.

    def put_document(self, purpose: str, key: str, text: str) -> None:
        """Store a text under a purpose, unless one is there: what was written first is what counts."""
        self._put((_documents, {"purpose": purpose, "key": key, "text": text}))

    def document(self, purpose: str, key: str) -> str | None:
        """The text that was written for a purpose and key; None when it is still to be written."""
        here = sa.and_(_documents.c.purpose == purpose, _documents.c.key == key)
        with self._engine.begin() as db:
            return db.scalar(sa.select(_documents.c.text).where(here))

    def documents(self, purpose: str) -> Mapping[str, str]:
        """All texts of a purpose, by key."""
        query = sa.select(_documents.c.key, _documents.c.text).where(_documents.c.purpose == purpose)
        with self._engine.begin() as db:
            return {row.key: row.text for row in db.execute(query)}

    # Results of the evaluation, spending and training metrics.

    def put_results(self, found: Sequence[tuple[str, Task, int, Rollout]]) -> None:
        """Store which rollout answers for (condition, task, trial)."""
        rows = [
            {"condition": condition, "task_key": task.key, "trial": trial, "rollout": rollout.key}
            for condition, task, trial, rollout in found
        ]
        self._put(*((_results, row) for row in rows))

    def results(self, executor: str = "") -> Sequence[tuple[str, str, str, int, bool]]:
        """(condition, ``env/domain``, task key, trial, passed) of every evaluation rollout.

        Args:
            executor: Only those of one of several; empty is all.
        """
        joined = _results.join(_rollouts, _results.c.rollout == _rollouts.c.key).join(
            _tasks, _results.c.task_key == _tasks.c.key
        )
        domain = sa.func.json_extract(_tasks.c.json, "$.env") + "/" + _tasks.c.domain
        passed = sa.func.json_extract(_rollouts.c.json, "$.verdict.passed")
        query = sa.select(_results.c.condition, domain, _results.c.task_key, _results.c.trial, passed)
        if executor:
            query = query.where(sa.func.json_extract(_rollouts.c.json, "$.executor") == executor)
        with self._engine.begin() as db:
            rows = db.execute(query.select_from(joined).order_by(sa.text("results.rowid"))).all()
        return [(condition, name, task, trial, bool(found)) for condition, name, task, trial, found in rows]

    def activations(self) -> Iterator[tuple[str, str, str, bool | None, bool, str]]:
        """Of every evaluation rollout, what tells whether its skill was at work.

        Yields:
            Condition; what it is paired by with other conditions; skill id; whether the agent loaded the skill, None
            where unknown; whether it passed; its steps and what came of them, as text.
        """
        joined = _results.join(_rollouts, _results.c.rollout == _rollouts.c.key)
        told = [
            sa.func.json_extract(_rollouts.c.json, path)
            for path in (
                "$.executor",
                "$.trajectory.skill_loaded",
                "$.verdict.passed",
                "$.trajectory.steps",
                "$.evidence.turns",
            )
        ]
        query = sa.select(
            _results.c.condition, _results.c.task_key, _rollouts.c.seed, _rollouts.c.skill_id, *told
        ).select_from(joined)
        with self._engine.begin() as db:
            for condition, task, seed, skill, executor, loaded, passed, *acts in db.execute(query):
                pair = f"{task} {seed} {executor or ''}"
                yield (
                    condition,
                    pair,
                    skill,
                    None if loaded is None else bool(loaded),
                    bool(passed),
                    str(acts),
                )

    def executors(self) -> tuple[str, ...]:
        """Those that the evaluation was run with, where there are several, in the order of the run; else empty."""
        name = sa.func.json_extract(_rollouts.c.json, "$.executor")
        joined = _results.join(_rollouts, _results.c.rollout == _rollouts.c.key)
        query = (
            sa.select(name).select_from(joined).where(name.is_not(None)).order_by(sa.text("results.rowid"))
        )
        with self._engine.begin() as db:
            return tuple(dict.fromkeys(db.scalars(query)))

    def add_spend(self, role: str, usage: Usage) -> None:
        """Add to what a role has spent: once a model call, so the totals are known here and only written."""
        with self._hot:
            if self._spent is None:
                self._spent = dict(self.spend())
            total = self._spent.get(role, Usage()) + usage
            self._write((_SPEND, {"role": role, "json": to_json(total)}))
            self._spent[role] = total

    def spend(self) -> Mapping[str, Usage]:
        """What each role has spent in all starts of the run."""
        with self._engine.begin() as db:
            return {role: from_json(text, Usage) for role, text in db.execute(sa.select(_spend))}

    def add_fault(self, kind: str, place: str) -> None:
        """Count one failure of the infrastructure, which no verdict comes from.

        Args:
            kind: As in `wer.errors.InfrastructureError.kind`.
            place: The role whose model failed, or where else.
        """
        added = insert(_faults).values(kind=kind, place=place, count=1)
        more = {"count": _faults.c.count + 1}
        with self._writing() as db:
            _faults.create(db, checkfirst=True)  # a run that an earlier WER began has no such table
            db.execute(added.on_conflict_do_update(index_elements=["kind", "place"], set_=more))

    def faults(self) -> Sequence[tuple[str, str, int]]:
        """(kind, place, how often) of all failures of the infrastructure, the most frequent first."""
        query = sa.select(_faults).order_by(_faults.c.count.desc(), _faults.c.kind, _faults.c.place)
        with self._engine.begin() as db:
            if not sa.inspect(db).has_table(_faults.name):
                return []
            return [(kind, place, count) for kind, place, count in db.execute(query)]

    def add_time(self, stage: str, seconds: float) -> None:
        """Add the wall time that a stage took, resumed runs included."""
        added = insert(_times).values(stage=stage, seconds=seconds)
        more = {"seconds": _times.c.seconds + added.excluded.seconds}
        with self._writing() as db:
            db.execute(added.on_conflict_do_update(index_elements=["stage"], set_=more))

    def times(self) -> Mapping[str, float]:
        """Seconds by stage, in the order of their first beginning."""
        query = sa.select(_times).order_by(sa.text("rowid"))
        with self._engine.begin() as db:
            return {row.stage: row.seconds for row in db.execute(query)}

    def put_metrics(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Store the figures of one update step; a step that is made again takes the place of the first."""
        row = {"stage": stage, "step": step, "json": dict(metrics)}
        added = insert(_metrics).values(**row)
        with self._writing() as db:
            db.execute(added.on_conflict_do_update(index_elements=["stage", "step"], set_=row))

    def metrics(self) -> Sequence[tuple[str, int, Mapping[str, float]]]:
        """(stage, step, figures by name) of all training steps, by stage in the order of their beginning."""
        query = sa.select(_metrics).order_by(sa.text("rowid"))
        with self._engine.begin() as db:
            rows = [(row.stage, row.step, row.json) for row in db.execute(query)]
        began = list(dict.fromkeys(stage for stage, _, _ in rows))
        return sorted(rows, key=lambda row: (began.index(row[0]), row[1]))

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
    _meta.create_all(db)
    if db.scalar(sa.select(_schema.c.version)) is None:
        db.execute(_schema.insert().values(version=SCHEMA))


def _insert(db: sa.Connection, *rows: tuple[sa.Table, Mapping[str, object]]) -> None:
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


def _task_row(task: Task) -> tuple[sa.Table, Mapping[str, object]]:
    row = {"key": task.key, "id": task.id, "domain": task.domain, "split": task.split, "json": to_json(task)}
    return _tasks, row


def _skill_row(skill: Skill) -> tuple[sa.Table, Mapping[str, object]]:
    return _skills, {"id": skill.id, "json": to_json(skill)}


def _pragmas(connection: object, _: object) -> None:
    with suppress(AttributeError):
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute("pragma busy_timeout=5000")
        cursor.execute("pragma synchronous=normal")
        cursor.close()
