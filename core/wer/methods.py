"""The methods that ``wer bench`` knows by name, and the grids of them after the paper's tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

from wer.configuration import RunConfig, merged, variant
from wer.errors import ConfigError
from wer.records import Json
from wer.tables import nearest

BASELINES = ("none", "seed")
"""Conditions that every comparison has; they are measured whether they are named or not."""

TAKEN = (*BASELINES, "again", "no-op", "skill", "untrained", "refined")
"""Names that a store and its report have for something else."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(@-?\d+)?")
_FOLDER = resources.files("wer") / "recipes"
_SHARED = (
    "env",
    "domains",
    "environment",
    "executor",
    "more_executors",
    "agent",
    "executor_options",
    "user_model",
    "verifier",
    "evaluation",
    "budget",
    "limits",
    "prices",
    "sandbox",
    "runner",
    "runner_options",
    "ray_address",
    "workers",
    "concurrency",
    "tracking",
    "methods",
)


def named(names: Sequence[str]) -> dict[str, Mapping[str, Json]]:
    """The settings of methods that a user lists; `BASELINES` have none and are left out.

    Raises:
        ConfigError: Nobody knows one of them, or one is named twice.
    """
    known = _table("methods")
    chosen: dict[str, Mapping[str, Json]] = {}
    for name in names:
        if name in BASELINES:
            continue
        if name not in known:
            raise ConfigError(
                f"no method named {name!r}{nearest(name, (*known, *BASELINES)) or '.'} Known: "
                f"{', '.join((*BASELINES, *known))}. Others are tables [methods.NAME] of wer.toml."
            )
        if name in chosen:
            raise ConfigError(f"method {name!r} is named twice: name each once")
        chosen[name] = known[name]
    return chosen


def recipe(name: str) -> dict[str, Mapping[str, Json]]:
    """A grid after one of the paper's tables.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in recipes():
        known = (*recipes(), *OF_WRITERS)
        raise ConfigError(f"no recipe named {name!r}{nearest(name, known) or '.'} Known: {', '.join(known)}.")
    methods = _table("methods")
    grid: dict[str, Mapping[str, Json]] = {}
    for method, changes in _table(name).items():
        base = methods[str(changes["like"])] if "like" in changes else methods.get(method, {})
        grid[method] = merged(base, {key: value for key, value in changes.items() if key != "like"})
    return grid


def changed(
    chosen: Mapping[str, Mapping[str, Json]], tables: Mapping[str, Mapping[str, Json]]
) -> dict[str, Mapping[str, Json]]:
    """The methods that were chosen, with what the user's tables of their names change; other tables add methods.

    A table changes the keys that it has. Where nothing was chosen, the tables choose.
    """
    known = _table("methods")
    base = chosen or {name: known.get(name, {}) for name in tables}
    return {
        name: merged(base.get(name, {}), tables.get(name, {})) for name in dict.fromkeys((*base, *tables))
    }


def recipes() -> tuple[str, ...]:
    """Name the recipes that ship with WER."""
    files = (file.name for file in _FOLDER.iterdir() if file.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in files if name != "methods.toml"))


OF_WRITERS: Mapping[str, tuple[str, str]] = {
    "writers": ("prompted", "writer"),
    "seed-writers": ("wer", "seed_writer"),
}
"""Recipes of a method a model: which of them revises best, and whose drafts are the best to start from."""


def writers(models: Sequence[str], name: str = "writers") -> dict[str, Mapping[str, Json]]:
    """One of the recipes `OF_WRITERS`, with these models.

    Raises:
        ConfigError: Two of them would have one name in the table.
    """
    method, setting = OF_WRITERS[name]
    grid: dict[str, Mapping[str, Json]] = {}
    for model in models:
        called = _called(model)
        if called in grid:
            raise ConfigError(
                f"--writers: {str(grid[called][setting])!r} and {model!r} would both be called {called!r}. Name each "
                f"model once; or give them names of your own, as tables [methods.NAME] of wer.toml with {setting}."
            )
        grid[called] = {**_table("methods")[method], setting: model}
    return grid


def _called(model: str) -> str:
    """A model's name as that of a method: without its provider and address."""
    name = model.partition("/")[2].partition("@")[0] or model
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")


def over_seeds(
    methods: Mapping[str, Mapping[str, Json]], seeds: Sequence[int]
) -> dict[str, Mapping[str, Json]]:
    """Every method once a training seed, as ``NAME@SEED``; with one seed as it is."""
    if len(seeds) == 1:
        return {name: {**table, "seed": seeds[0]} for name, table in methods.items()}
    return {f"{name}@{seed}": {**table, "seed": seed} for name, table in methods.items() for seed in seeds}


def method_of(condition: str) -> str:
    """The method behind a condition: without its training seed."""
    return condition.partition("@")[0]


def configurations(config: RunConfig) -> dict[str, RunConfig]:
    """Each method's whole configuration.

    Raises:
        ConfigError: A setting is wrong, or changes what all methods must share.
    """
    made = {}
    for name, changes in config.methods.items():
        if name in TAKEN:
            raise ConfigError(
                f"[methods.{name}] can't be: {name!r} is a baseline, or a condition of every report. "
                "Choose another name."
            )
        if _NAME.fullmatch(name) is None:
            raise ConfigError(
                f"[methods.{name}]: {name!r} can't name a method. Its skills get a folder of that name: use letters, "
                "digits, dots, hyphens and underscores, at most 64, a letter or digit first."
            )
        shared = [key for key in changes if key in _SHARED]
        training = changes.get("training")
        if isinstance(training, Mapping) and "train_limit" in training:
            shared.append("training.train_limit")
        if shared:
            raise ConfigError(
                f"[methods.{name}] changes {', '.join(shared)}: methods are compared on the same tasks, with the "
                "same agent and budget. Set that for all of them, or use wer run."
            )
        made[name] = variant(config, dict(changes))
    return made


def _table(name: str) -> dict[str, Mapping[str, Json]]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
