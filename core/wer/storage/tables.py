"""What a run's store holds: its tables, and the version that they have together."""

from __future__ import annotations

import sqlalchemy as sa

SCHEMA = 1

META = sa.MetaData()
schema = sa.Table("schema", META, sa.Column("version", sa.Integer, nullable=False))
tasks = sa.Table(
    "tasks",
    META,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("id", sa.String, nullable=False),
    sa.Column("domain", sa.String, nullable=False),
    sa.Column("split", sa.String, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
    sa.Column("expect", sa.Text),
)
skills = sa.Table(
    "skills", META, sa.Column("id", sa.String, primary_key=True), sa.Column("json", sa.Text, nullable=False)
)
rollouts = sa.Table(
    "rollouts",
    META,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, nullable=False, index=True),
    sa.Column("skill_id", sa.String, nullable=False, index=True),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("verifier", sa.String, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
)
states = sa.Table(
    "states",
    META,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, nullable=False),
    sa.Column("skill_id", sa.String, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("parent", sa.String),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("phase", sa.Integer, nullable=False),
)
candidates = sa.Table(
    "candidates",
    META,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("state_id", sa.String, primary_key=True),
    sa.Column("index", sa.Integer, primary_key=True),
    sa.Column("id", sa.String, nullable=False, index=True),
    sa.Column("json", sa.Text, nullable=False),
    sa.Column("rollouts", sa.JSON),
    sa.Column("reward", sa.Text),
)
documents = sa.Table(
    "documents",
    META,
    sa.Column("purpose", sa.String, primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)
results = sa.Table(
    "results",
    META,
    sa.Column("condition", sa.String, primary_key=True),
    sa.Column("task_key", sa.String, primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("rollout", sa.String, nullable=False),
)
spend = sa.Table(
    "spend", META, sa.Column("role", sa.String, primary_key=True), sa.Column("json", sa.Text, nullable=False)
)
faults = sa.Table(
    "faults",
    META,
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("place", sa.String, primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
)
times = sa.Table(
    "times",
    META,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("seconds", sa.Float, nullable=False),
)
metrics = sa.Table(
    "metrics",
    META,
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("json", sa.JSON, nullable=False),
)
