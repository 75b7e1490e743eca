"""The methods that ``wer bench`` knows by name, and the grids of them after the paper's tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

from wer.configuration import RunConfig, variant
from wer.errors import ConfigError
from wer.records import Json
from wer.tables import nearest

BASELINES = ("none", "seed")
"""Conditions that every comparison has; they are measured whether they are named or not."""

_FOLDER = resources.files("wer") / "recipes"
_SHARED = (
    "env",
    "domains",
    "environment",
    "executor",
    "agent",
    "executor_options",
    "user_model",
    "verifier",
    "evaluation",
    "budget",
    "seed_skill",
    "seed_writer",
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
        raise ConfigError(
            f"no recipe named {name!r}{nearest(name, recipes()) or '.'} Known: {', '.join(recipes())}."
        )
    methods = _table("methods")
    grid: dict[str, Mapping[str, Json]] = {}
    for method, changes in _table(name).items():
        base = methods[str(changes["like"])] if "like" in changes else methods.get(method, {})
        grid[method] = {**base, **{key: value for key, value in changes.items() if key != "like"}}
    return grid


def recipes() -> tuple[str, ...]:
    """Name the recipes that ship with WER."""
    files = (file.name for file in _FOLDER.iterdir() if file.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in files if name != "methods.toml"))


def writers(models: Sequence[str]) -> dict[str, Mapping[str, Json]]:
    """One prompted method a writer: which model revises best."""
    base = _table("methods")["prompted"]
    return {
        model.partition("/")[2].partition("@")[0].replace("/", "-"): {**base, "writer": model}
        for model in models
    }


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
        if name in BASELINES:
            raise ConfigError(f"[methods.{name}] can't be: {name!r} is a baseline that every comparison has")
        shared = [key for key in changes if key in _SHARED]
        if shared:
            raise ConfigError(
                f"[methods.{name}] changes {', '.join(shared)}: methods are compared on the same tasks, with the "
                "same agent and budget. Set that for all of them, or use wer run."
            )
        made[name] = variant(config, dict(changes))
    return made


def _table(name: str) -> dict[str, Mapping[str, Json]]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
