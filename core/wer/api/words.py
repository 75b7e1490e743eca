"""The words that all calls share, and the configuration that they resolve to: the command line's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from attrs import asdict, field, frozen

from wer.api.parts import named
from wer.configuration import RunConfig, resolve
from wer.errors import ConfigError
from wer.gpus import split_assignments
from wer.records import Json
from wer.tables import nearest

Agent: TypeAlias = str | Callable[..., Any]


@frozen
class Budget:
    """Caps over all roles of a run together; 0 is no cap. A run that reaches one stops, and can go on.

    Attributes:
        rollouts: Those found in the run folder are free.
        tokens: Prompt and completion tokens.
        usd: US dollars. Models without a known price need one in ``price``.
    """

    rollouts: int = field(default=0, kw_only=True)
    tokens: int = field(default=0, kw_only=True)
    usd: float = field(default=0.0, kw_only=True)


class Words(TypedDict, total=False):
    """What every call understands. All are options of the command line too; only objects are more than text.

    Attributes:
        tasks: A ``tasks.jsonl`` beside the file with the check, in the place of an environment, for an agent with
            tools of its own.
        check: ``check(task, end)``, the judge of those tasks.
        domains: Some of the environment's, one or several; all by default.
        executor: The frozen agent: a model, ``provider/name[@url]``; or your own: a function, a URL, a command.
        reset: Restores the state of an agent with tools of its own between rollouts.
        isolation: What isolates its rollouts from each other, in words: it may then run several at a time.
        agent: The executor around a model: ``toolagent``, or a plugin's.
        writer: The model that writes skills; the executor's by default, if that is a model.
        user_model: Plays the user where one is simulated.
        backend: Who trains the writer: ``prompted`` (nobody), ``grpo``, ``openrlhf``, or a plugin's.
        sandbox: ``auto``, ``docker`` or ``process``.
        verifier: Instead of the environment's own.
        runner: ``local``, or ``ray``.
        ray_address: ``HOST:PORT`` of the cluster.
        gpus: By role: ``{"writer": "0-3"}``, or the command line's text.
        track: Trackers, one or several.
        preset: ``cpu``, ``paper``, ...
        config: A ``wer.toml``; ``./wer.toml`` when it exists.
        set: Any setting by its dotted name: ``{"training.k": 8}``.
        seed: Of every die; 0 by default.
        budget: See `Budget`.
        price: US dollars per million prompt and completion tokens, by model.
        runs: Where run folders are; ``runs`` by default.
        resume: The folder of a run that goes on: the same call, and no finished rollout is paid twice.
        progress: Whether to show what happens, on stderr; True by default.
    """

    tasks: str | Path
    check: Callable[..., Any]
    domains: str | Sequence[str]
    executor: Agent
    reset: Agent
    isolation: str
    agent: str
    writer: str
    user_model: str
    backend: str
    sandbox: str
    verifier: str
    runner: str
    ray_address: str
    gpus: Mapping[str, str] | str
    track: str | Sequence[str]
    preset: str
    config: str | Path
    set: Mapping[str, Json]
    seed: int
    budget: Budget
    price: Mapping[str, Sequence[float]]
    runs: str | Path
    resume: str | Path
    progress: bool


_PLAIN = (
    *("agent", "writer", "user_model", "backend", "sandbox", "verifier", "runner", "ray_address", "seed"),
    "domains",
)


def demand_known(call: Callable[..., Any], words: Mapping[str, Any]) -> None:
    """Refuse a misspelt word, as Python does.

    Args:
        call: With a signature that has every word.

    Raises:
        TypeError: With the nearest, or with where settings and caps belong.
    """
    taken = inspect.signature(call).parameters.values()
    named = [each.name for each in taken if each.kind is not each.VAR_POSITIONAL]
    for word in words:
        if word not in named:
            hint = nearest(word, named) or (
                ". Settings are given as set={'training.k': 8}, and caps as budget=wer.Budget(rollouts=400); "
                f"help(wer.{call.__name__}) shows every word."
            )
            raise TypeError(f"{call.__name__}() got an unexpected keyword argument {word!r}{hint}")


def configured(env: Sequence[str], words: Words, more: Mapping[str, Json]) -> RunConfig:
    """Combine preset, file and words, as the command line does.

    Args:
        env: Names of environments; empty leaves them to file and preset.
        words: None is "not given", as it is on the way through a function of the user's own.
        more: Further settings by dotted name; None is "not given".

    Raises:
        ConfigError: Whatever the user can correct.
    """
    default = Path("wer.toml")
    config = words.get("config")
    file = Path(config) if config is not None else default if default.exists() else None
    track = words.get("track") or ()
    said: dict[str, Json] = {
        **{name: words.get(name) for name in _PLAIN},
        "env": list(env) or None,
        "executor": named(words.get("executor"), "executor"),
        "executor_options.reset": named(words.get("reset"), "reset"),
        "executor_options.isolation": words.get("isolation"),
        "gpus": _assigned(words.get("gpus")),
        "prices": words.get("price"),
        **{f"budget.max_{'cost' if key == 'usd' else key}": cap for key, cap in _caps(words).items()},
        **{f"tracking.{name}": {} for name in ([track] if isinstance(track, str) else track)},
        **more,
    }
    given = {name: value for name, value in said.items() if value is not None}
    return resolve(words.get("preset"), file, (), _settings(words.get("set")) | given)


def _settings(given: object) -> dict[str, Json]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"set is {given!r:.80}, expected settings by name, such as {{'training.k': 8}}.")
    return dict(given)


def _assigned(gpus: Mapping[str, str] | str | None) -> Mapping[str, str] | None:
    return split_assignments(gpus) if isinstance(gpus, str) else gpus


def _caps(words: Words) -> Mapping[str, Json]:
    budget = words.get("budget")
    if budget is None:
        return {}
    if not isinstance(budget, Budget):
        raise ConfigError(
            f"budget is {budget!r:.80}, expected a wer.Budget, such as wer.Budget(rollouts=400)."
        )
    return {key: cap for key, cap in asdict(budget).items() if cap}
