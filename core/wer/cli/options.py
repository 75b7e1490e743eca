"""The words that several commands share, and the configuration that they resolve to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from attrs import asdict, frozen
from cyclopts import Parameter, Token
from rich.console import Console

from wer import folders
from wer.configuration import MAY_CHANGE, RunConfig, resolve
from wer.errors import ConfigError
from wer.gpus import split_assignments
from wer.records import Json


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Read a whole number; cyclopts by itself would make 2 of 1.5."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number. Write one such as 200") from None


Whole: TypeAlias = Annotated[int, Parameter(converter=_whole)]
Runs = Annotated[Path, Parameter(help="Where run folders are.")]
DryRun = Annotated[bool, Parameter(help="Check the configuration, print the forecast and stop.", negative=())]
VerifierName = Annotated[
    str | None, Parameter(name="--verifier", help="Who judges. Default: the environment's own verifier.")
]


@Parameter(name="*")
@frozen(kw_only=True)
class Settings:
    """What every command that runs tasks understands; the rest is in wer.toml or behind ``--set``."""

    env: Annotated[
        list[str] | None,
        Parameter(
            help="Environment, for example bfcl; or the file or module of a wer.Domain, for example shop.py:shop. "
            "Repeat for several.",
            negative=(),
        ),
    ] = None
    domains: Annotated[
        str | None, Parameter(help="Separated by commas, for example file_system,trading_bot. Default: all.")
    ] = None
    executor: Annotated[
        str | None,
        Parameter(
            help="The frozen agent. Its model: openai/gpt-4o-mini, openai/NAME@http://127.0.0.1:8000/v1, "
            "litellm/anthropic/NAME, local/qwen2.5-coder-0.5b, torch/FOLDER. Or an agent of your own: "
            "agent.py:FUNCTION, 'command: python agent.py', http://127.0.0.1:8000/ (docs/own-agents.md)."
        ),
    ] = None
    more_executors: Annotated[
        str | None,
        Parameter(
            help="Further frozen agents, separated by commas: every rollout is had with each of them, and Pass@1 is "
            "told for each and for all."
        ),
    ] = None
    agent: Annotated[
        str | None, Parameter(help="The executor around that model: toolagent, or an installed plugin.")
    ] = None
    writer: Annotated[
        str | None,
        Parameter(help="The model that writes skills, likewise. Default: the executor's, if that is one."),
    ] = None
    user_model: Annotated[
        str | None,
        Parameter(help="The model that plays the user in an environment with a simulated one, such as tau2."),
    ] = None
    backend: Annotated[
        str | None,
        Parameter(help="Who trains the writer: prompted (nobody), grpo, openrlhf, or an installed plugin."),
    ] = None
    sandbox: Annotated[str | None, Parameter(help="auto, docker or process. Default: auto.")] = None
    verifier: VerifierName = None
    verifier_noise: Annotated[
        float | None,
        Parameter(
            help="Show the optimizer this share of the verdicts the other way round, such as 0.1; what is measured and "
            "stored stays true. Default: 0."
        ),
    ] = None
    runner: Annotated[
        str | None, Parameter(help="Where rollouts run: local, or ray (every node of a cluster).")
    ] = None
    ray_address: Annotated[
        str | None,
        Parameter(
            help="HOST:PORT of the Ray cluster for --runner ray and --backend openrlhf. "
            "Default: the cluster that this machine belongs to."
        ),
    ] = None
    gpus: Annotated[
        str | None,
        Parameter(help="GPUs of this machine by role: writer=0-3,executor=4-7. Default: what is found."),
    ] = None
    track: Annotated[
        list[str] | None,
        Parameter(
            help="Show figures as they come in tensorboard or wandb; its settings are tracking.NAME. "
            "Repeat for several.",
            negative=(),
        ),
    ] = None
    preset: Annotated[
        str | None,
        Parameter(
            help="cpu (no key, no GPU), cpu-long (a night), cpu-tiny (the openrlhf backend's test), paper (the "
            "paper's settings), or paper-open (open weights in every role, 8 GPUs)."
        ),
    ] = None
    config: Annotated[Path | None, Parameter(help="A wer.toml. Default: ./wer.toml when it exists.")] = None
    set: Annotated[
        list[str] | None,
        Parameter(help="Any setting: --set training.k=8. Repeat for several.", negative=()),
    ] = None
    seed: Annotated[Whole | None, Parameter(help="Of every die that is rolled. Default: 0.")] = None
    max_rollouts: Annotated[Whole | None, Parameter(help="Stop, resumably, after so many rollouts.")] = None
    max_tokens: Annotated[
        Whole | None, Parameter(help="Stop, resumably, after so many tokens, all roles together.")
    ] = None
    max_cost: Annotated[
        float | None, Parameter(help="Stop, resumably, after so many US dollars, all roles together.")
    ] = None

    price: Annotated[
        list[str] | None,
        Parameter(
            help="MODEL=PROMPT,COMPLETION in US dollars per million tokens, for --max-cost: "
            "--price openai/gpt-4o-mini=0.15,0.60. Repeat for several.",
            negative=(),
        ),
    ] = None

    def resolve(self, **more: Json) -> RunConfig:
        """Combine preset, file and options; what wasn't given is left to the others.

        Args:
            more: Further keys, with two underscores for a dot.
        """
        given = {name: value for name, value in asdict(self).items() if name not in _NOT_KEYS}
        if self.domains is not None:
            given["domains"] = listed("--domains", self.domains)
        if self.more_executors is not None:
            given["more_executors"] = listed("--more-executors", self.more_executors)
        if self.gpus is not None:
            given["gpus"] = split_assignments(self.gpus)
        others = {name.replace("__", "."): value for name, value in more.items()}
        default = Path("wer.toml")
        file = self.config or (default if default.exists() else None)
        given["training.verifier_noise"] = self.verifier_noise
        given |= {**self._purse(), **self._tracked(), **others}
        return resolve(self.preset, file, self.set or (), given)

    def resume(self, file: Path) -> RunConfig:
        """The configuration of a run that goes on, with what may change about it.

        Raises:
            ConfigError: An option was given that would make it another run.
        """
        fixed = [
            f"--{name.replace('_', '-')}"
            for name, value in asdict(self).items()
            if value is not None and name not in ("set", "price", "track", *_CAPS, *_PLACES)
        ]
        fixed += [f"--set {item}" for item in self.set or () if not item.startswith(MAY_CHANGE)]
        if fixed:
            raise ConfigError(
                f"{', '.join(fixed)} can't be changed in a run that goes on. Leave it out, or start a new run; "
                "caps, --price, --track, --runner, --ray-address and --set limits.*, tracking.*, concurrency and "
                "workers may change."
            )
        places = {name: getattr(self, name) for name in _PLACES}
        return resolve(None, file, self.set or (), {**self._purse(), **self._tracked(), **places})

    def _tracked(self) -> dict[str, Json]:
        """A table for each tracker named, which turns it on and leaves its settings as they are."""
        return {f"tracking.{name}": {} for name in self.track or ()}

    def _purse(self) -> dict[str, Json]:
        """Caps and prices, as configuration keys."""
        purse = {f"budget.{name}": getattr(self, name) for name in _CAPS}
        return {**purse, "prices": dict(_price(text) for text in self.price) if self.price else None}


_CAPS = ("max_rollouts", "max_tokens", "max_cost")
_PLACES = ("runner", "ray_address")
_NOT_KEYS = (*_CAPS, "preset", "config", "set", "price", "track", "verifier_noise")


def run_folder(runs: Path, run: str | None) -> Path:
    """Find a run's folder to read from, and say so when it is still being written.

    Raises:
        ConfigError: There is no such run.
    """
    folder = folders.find(runs, run)
    busy = folders.holder(folder)
    if busy is not None:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"process {busy} is still writing {folder.name}: this is what it has finished so far",
            markup=False,
        )
    return folder


def listed(option: str, text: str) -> list[str]:
    """Split an option at its commas.

    Raises:
        ConfigError: A name between two of them is empty.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise ConfigError(
            f"{option} {text!r} names something empty. Write names with single commas between, as in "
            "file_system,trading_bot, or leave it out for all."
        )
    return parts


def _price(text: str) -> tuple[str, list[float]]:
    model, _, numbers = text.rpartition("=")
    try:
        return model, [float(part) for part in numbers.split(",")]
    except ValueError:
        raise ConfigError(
            f"--price {text!r} is not MODEL=PROMPT,COMPLETION, such as openai/m=0.15,0.60"
        ) from None
