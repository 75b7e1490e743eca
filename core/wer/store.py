"""A run's memory: the records that a run makes, put into one SQLite file that only the driver writes.

A replay of the same run finds here what it would otherwise pay for again. Rows are JSON of the
records plus the columns that questions are asked by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from wer.codec import from_json, to_json
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
from wer.storage import tables
from wer.storage.database import Database, insert_new

_FOUND = sa.select(tables.rollouts.c.json).where(tables.rollouts.c.key == sa.bindparam("key"))
_SPEND = "insert into spend (role, json) values (:role, :json) on conflict (role) do update set json = :json"


class Store(Database):
    """The ``wer.sqlite`` of one run folder.

    Args:
        create: Make it where there is none.
        read_only: Leave the file as it is, whatever is asked: for those who only look on.
    """

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        super().__init__(path, create=create, read_only=read_only)
        self._spent: dict[str, Usage] | None = None
        self._there: set[str] = set()

    # Tasks and what verifiers expect of them.

    def put_task(self, task: Task) -> None:
        """Store a task once; a task that is there already is not written again."""
        self._put(_task_row(task))

    def task(self, key: str) -> Task:
        """The task of a key.

        Raises:
            StoreError: A row names it and it is not there: the run folder is damaged.
        """
        return from_json(self._one(sa.select(tables.tasks.c.json).where(tables.tasks.c.key == key)), Task)

    def put_expect(self, task: Task, expect: Json) -> None:
        """Store what the verifier compares a stored task with: judging needs no sandbox ever after."""
        with self._writing() as db:
            db.execute(
                tables.tasks.update().where(tables.tasks.c.key == task.key).values(expect=json.dumps(expect))
            )

    def expect(self, task_key: str) -> tuple[Json] | None:
        """The stored expectation in a tuple of one, or None when it was never made."""
        with self._engine.begin() as db:
            text = db.scalar(sa.select(tables.tasks.c.expect).where(tables.tasks.c.key == task_key))
        return None if text is None else (json.loads(text),)

    def marks(self) -> Sequence[str]:
        """Remarks that the measured tasks carry, each once."""
        query = sa.select(tables.tasks.c.json).where(
            tables.tasks.c.key.in_(sa.select(tables.results.c.task_key))
        )
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
        return from_json(
            self._one(sa.select(tables.skills.c.json).where(tables.skills.c.id == skill_id)), Skill
        )

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
        self._put(*rows, (tables.rollouts, row))
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
        passed = sa.func.json_extract(tables.rollouts.c.json, "$.verdict.passed")
        return self._one(sa.select(passed).where(tables.rollouts.c.key == key)) == "1"

    def rollouts(self) -> Sequence[tuple[Rollout, str, str]]:
        """Every rollout, with its task's key and its verifier's name, in order of finishing."""
        query = sa.select(
            tables.rollouts.c.json, tables.rollouts.c.task_key, tables.rollouts.c.verifier
        ).order_by(sa.text("rowid"))
        with self._engine.begin() as db:
            return [(from_json(text, Rollout), key, verifier) for text, key, verifier in db.execute(query)]

    def count_rollouts(self) -> int:
        """How many rollouts were finished, and so paid for, in all starts of the run."""
        with self._engine.begin() as db:
            return db.scalar(sa.select(sa.func.count()).select_from(tables.rollouts)) or 0

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
        self._put(_task_row(state.task), _skill_row(state.skill), (tables.states, row))

    def state(self, state_id: str) -> RefinementState:
        """A state with its task, its skill and its whole evidence, as the optimizer saw it."""
        with self._engine.begin() as db:
            row = db.execute(sa.select(tables.states).where(tables.states.c.id == state_id)).one()
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
                    tables.candidates,
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
        here = sa.and_(tables.candidates.c.stage == stage, tables.candidates.c.state_id == state_id)
        query = sa.select(tables.candidates.c.json).where(here).order_by(tables.candidates.c.index)
        with self._engine.begin() as db:
            return tuple(from_json(text, Candidate) for text in db.scalars(query))

    def put_experience(self, stage: str, experience: Experience) -> None:
        """Store what a candidate of a written group led to: its skill, its rollouts and its reward."""
        candidate = experience.candidate
        here = sa.and_(
            tables.candidates.c.stage == stage,
            tables.candidates.c.state_id == candidate.state_id,
            tables.candidates.c.index == candidate.index,
        )
        values = {
            "rollouts": [rollout.key for rollout in experience.rollouts],
            "reward": to_json(experience.reward),
        }
        with self._writing() as db:
            if candidate.skill is not None:
                insert_new(db, _skill_row(candidate.skill))
            db.execute(tables.candidates.update().where(here).values(**values))

    def experiences(self, stage: str | None = None) -> Sequence[tuple[str, Experience]]:
        """Scored candidates with their stage, in the order of writing."""
        query = (
            sa.select(tables.candidates)
            .where(tables.candidates.c.reward.is_not(None))
            .order_by(sa.text("rowid"))
        )
        if stage is not None:
            query = query.where(tables.candidates.c.stage == stage)
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
        self._put((tables.documents, {"purpose": purpose, "key": key, "text": text}))

    def document(self, purpose: str, key: str) -> str | None:
        """The text that was written for a purpose and key; None when it is still to be written."""
        here = sa.and_(tables.documents.c.purpose == purpose, tables.documents.c.key == key)
        with self._engine.begin() as db:
            return db.scalar(sa.select(tables.documents.c.text).where(here))

    def documents(self, purpose: str) -> Mapping[str, str]:
        """All texts of a purpose, by key."""
        query = sa.select(tables.documents.c.key, tables.documents.c.text).where(
            tables.documents.c.purpose == purpose
        )
        with self._engine.begin() as db:
            return {row.key: row.text for row in db.execute(query)}

    # Results of the evaluation, spending and training metrics.

    def put_results(self, found: Sequence[tuple[str, Task, int, Rollout]]) -> None:
        """Store which rollout answers for (condition, task, trial)."""
        rows = [
            {"condition": condition, "task_key": task.key, "trial": trial, "rollout": rollout.key}
            for condition, task, trial, rollout in found
        ]
        self._put(*((tables.results, row) for row in rows))

    def results(self, executor: str = "") -> Sequence[tuple[str, str, str, int, bool]]:
        """(condition, ``env/domain``, task key, trial, passed) of every evaluation rollout.

        Args:
            executor: Only those of one of several; empty is all.
        """
        joined = tables.results.join(tables.rollouts, tables.results.c.rollout == tables.rollouts.c.key).join(
            tables.tasks, tables.results.c.task_key == tables.tasks.c.key
        )
        domain = sa.func.json_extract(tables.tasks.c.json, "$.env") + "/" + tables.tasks.c.domain
        passed = sa.func.json_extract(tables.rollouts.c.json, "$.verdict.passed")
        query = sa.select(
            tables.results.c.condition, domain, tables.results.c.task_key, tables.results.c.trial, passed
        )
        if executor:
            query = query.where(sa.func.json_extract(tables.rollouts.c.json, "$.executor") == executor)
        with self._engine.begin() as db:
            rows = db.execute(query.select_from(joined).order_by(sa.text("results.rowid"))).all()
        return [(condition, name, task, trial, bool(found)) for condition, name, task, trial, found in rows]

    def activations(self) -> Iterator[tuple[str, str, str, bool | None, bool, str]]:
        """Of every evaluation rollout, what tells whether its skill was at work.

        Yields:
            Condition; what it is paired by with other conditions; skill id; whether the agent loaded the skill, None
            where unknown; whether it passed; its steps and what came of them, as text.
        """
        joined = tables.results.join(tables.rollouts, tables.results.c.rollout == tables.rollouts.c.key)
        told = [
            sa.func.json_extract(tables.rollouts.c.json, path)
            for path in (
                "$.executor",
                "$.trajectory.skill_loaded",
                "$.verdict.passed",
                "$.trajectory.steps",
                "$.evidence.turns",
            )
        ]
        query = sa.select(
            tables.results.c.condition,
            tables.results.c.task_key,
            tables.rollouts.c.seed,
            tables.rollouts.c.skill_id,
            *told,
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
        name = sa.func.json_extract(tables.rollouts.c.json, "$.executor")
        joined = tables.results.join(tables.rollouts, tables.results.c.rollout == tables.rollouts.c.key)
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
            return {role: from_json(text, Usage) for role, text in db.execute(sa.select(tables.spend))}

    def add_fault(self, kind: str, place: str) -> None:
        """Count one failure of the infrastructure, which no verdict comes from.

        Args:
            kind: As in `wer.errors.InfrastructureError.kind`.
            place: The role whose model failed, or where else.
        """
        added = insert(tables.faults).values(kind=kind, place=place, count=1)
        more = {"count": tables.faults.c.count + 1}
        with self._writing() as db:
            tables.faults.create(db, checkfirst=True)  # a run that an earlier WER began has no such table
            db.execute(added.on_conflict_do_update(index_elements=["kind", "place"], set_=more))

    def faults(self) -> Sequence[tuple[str, str, int]]:
        """(kind, place, how often) of all failures of the infrastructure, the most frequent first."""
        query = sa.select(tables.faults).order_by(
            tables.faults.c.count.desc(), tables.faults.c.kind, tables.faults.c.place
        )
        with self._engine.begin() as db:
            if not sa.inspect(db).has_table(tables.faults.name):
                return []
            return [(kind, place, count) for kind, place, count in db.execute(query)]

    def add_time(self, stage: str, seconds: float) -> None:
        """Add the wall time that a stage took, resumed runs included."""
        added = insert(tables.times).values(stage=stage, seconds=seconds)
        more = {"seconds": tables.times.c.seconds + added.excluded.seconds}
        with self._writing() as db:
            db.execute(added.on_conflict_do_update(index_elements=["stage"], set_=more))

    def times(self) -> Mapping[str, float]:
        """Seconds by stage, in the order of their first beginning."""
        query = sa.select(tables.times).order_by(sa.text("rowid"))
        with self._engine.begin() as db:
            return {row.stage: row.seconds for row in db.execute(query)}

    def put_metrics(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Store the figures of one update step; a step that is made again takes the place of the first."""
        row = {"stage": stage, "step": step, "json": dict(metrics)}
        added = insert(tables.metrics).values(**row)
        with self._writing() as db:
            db.execute(added.on_conflict_do_update(index_elements=["stage", "step"], set_=row))

    def metrics(self) -> Sequence[tuple[str, int, Mapping[str, float]]]:
        """(stage, step, figures by name) of all training steps, by stage in the order of their beginning."""
        query = sa.select(tables.metrics).order_by(sa.text("rowid"))
        with self._engine.begin() as db:
            rows = [(row.stage, row.step, row.json) for row in db.execute(query)]
        began = list(dict.fromkeys(stage for stage, _, _ in rows))
        return sorted(rows, key=lambda row: (began.index(row[0]), row[1]))


def _task_row(task: Task) -> tuple[sa.Table, Mapping[str, object]]:
    row = {"key": task.key, "id": task.id, "domain": task.domain, "split": task.split, "json": to_json(task)}
    return tables.tasks, row


def _skill_row(skill: Skill) -> tuple[sa.Table, Mapping[str, object]]:
    return tables.skills, {"id": skill.id, "json": to_json(skill)}
