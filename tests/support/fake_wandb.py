"""The part of Weights & Biases' interface that WER uses, without the service, as its 0.31 behaves."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any


class Error(Exception):
    """What ``wandb.init`` raises when nobody is logged in, or the service can't be reached."""


class Settings:
    """Refuses an unknown setting, as the real one does."""

    known = ("console", "save_code", "disable_git", "x_disable_meta")

    def __init__(self, **settings: object) -> None:
        assert set(settings) <= set(self.known)
        self.settings = settings


class Config(dict[str, Any]):
    """A run's configuration."""

    def update(self, values: Mapping[str, Any], *, allow_val_change: bool = False) -> None:  # type: ignore[override]
        for name, value in values.items():
            assert allow_val_change or self.get(name, value) == value
            self[name] = value


class Run:
    """Keeps what it is sent."""

    def __init__(self, **begun: Any) -> None:
        self.begun = begun
        self.config = Config(begun.get("config") or {})
        self.rows: list[Mapping[str, float]] = []
        self.axes: dict[str, str | None] = {}
        self.finished = False

    def log(self, row: Mapping[str, float]) -> None:
        assert not self.finished
        self.rows.append(row)

    def define_metric(self, name: str, step_metric: str | None = None, hidden: bool = False) -> None:
        self.axes[name] = step_metric

    def finish(self) -> None:
        self.finished = True


def module(*, active: Run | None = None, refusal: str = "") -> ModuleType:
    """A module to stand in for ``wandb``.

    Args:
        active: The run of this process, or none.
        refusal: Why ``init`` fails, if it does.
    """
    fake: Any = ModuleType("wandb")
    fake.run, fake.Settings, fake.Error, fake.runs = active, Settings, Error, []

    def init(**begun: Any) -> Run:
        if refusal:
            raise Error(refusal)
        fake.runs.append(Run(**begun))
        return fake.runs[-1]

    fake.init = init
    return fake
