"""The words that several commands share, and the configuration that they resolve to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from attrs import asdict, frozen
from cyclopts import Parameter

from wer.configuration import RunConfig, resolve
from wer.errors import ConfigError
from wer.records import Json

Runs = Annotated[Path, Parameter(help="Where run folders are.")]
VerifierName = Annotated[
    str | None, Parameter(name="--verifier", help="Who judges. Default: the environment's own verifier.")
]


@Parameter(name="*")
@frozen(kw_only=True)
class Settings:
    """What every command that runs tasks understands; the rest is in wer.toml or behind ``--set``."""

    env: Annotated[
        list[str] | None,
        Parameter(help="Environment, for example bfcl. Repeat for several.", negative=()),
    ] = None
    domains: Annotated[
        str | None, Parameter(help="Separated by commas, for example file_system,trading_bot. Default: all.")
    ] = None
    executor: Annotated[
        str | None,
        Parameter(
            help="The frozen agent's model: openai/gpt-4o-mini, openai/NAME@http://127.0.0.1:8000/v1, "
            "litellm/anthropic/NAME, local/qwen2.5-coder-0.5b, torch/FOLDER."
        ),
    ] = None
    writer: Annotated[
        str | None, Parameter(help="The model that writes skills, likewise. Default: the executor's.")
    ] = None
    backend: Annotated[
        str | None, Parameter(help="Who trains the writer: prompted (nobody), grpo, or an installed plugin.")
    ] = None
    sandbox: Annotated[str | None, Parameter(help="auto, docker or process. Default: auto.")] = None
    verifier: VerifierName = None
    preset: Annotated[
        str | None,
        Parameter(help="cpu (no key, no GPU), cpu-long (a night), or paper (the paper's settings)."),
    ] = None
    config: Annotated[Path | None, Parameter(help="A wer.toml. Default: ./wer.toml when it exists.")] = None
    set: Annotated[
        list[str] | None,
        Parameter(help="Any setting: --set training.k=8. Repeat for several.", negative=()),
    ] = None
    seed: Annotated[int | None, Parameter(help="Of every die that is rolled. Default: 0.")] = None
    max_rollouts: Annotated[int | None, Parameter(help="Stop, resumably, after so many rollouts.")] = None
    max_tokens: Annotated[
        int | None, Parameter(help="Stop, resumably, after so many tokens, all roles together.")
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
            given["domains"] = [part.strip() for part in self.domains.split(",") if part.strip()]
        others = {name.replace("__", "."): value for name, value in more.items()}
        default = Path("wer.toml")
        file = self.config or (default if default.is_file() else None)
        return resolve(self.preset, file, self.set or (), {**given, **self._purse(), **others})

    def resume(self, file: Path) -> RunConfig:
        """The configuration of a run that goes on, with what may change about it.

        Raises:
            ConfigError: An option was given that would make it another run.
        """
        fixed = [
            f"--{name}"
            for name, value in asdict(self).items()
            if value is not None and name not in ("set", "price") and name not in _CAPS
        ]
        fixed += [f"--set {item}" for item in self.set or () if not item.startswith(_MAY_CHANGE)]
        if fixed:
            raise ConfigError(
                f"{', '.join(fixed)} can't be changed in a run that goes on. Leave it out, or start a new run; "
                "caps, --price and --set limits.*, concurrency and workers may change."
            )
        return resolve(None, file, self.set or (), self._purse())

    def _purse(self) -> dict[str, Json]:
        """Caps and prices, as configuration keys."""
        purse = {f"budget.{name}": getattr(self, name) for name in _CAPS}
        return {**purse, "prices": dict(_price(text) for text in self.price) if self.price else None}


_CAPS = ("max_rollouts", "max_tokens", "max_cost")
_NOT_KEYS = (*_CAPS, "preset", "config", "set", "price")
_MAY_CHANGE = ("limits.", "budget.", "prices", "concurrency", "workers")


def _price(text: str) -> tuple[str, list[float]]:
    model, _, numbers = text.rpartition("=")
    try:
        return model, [float(part) for part in numbers.split(",")]
    except ValueError:
        raise ConfigError(
            f"--price {text!r} is not MODEL=PROMPT,COMPLETION, such as openai/m=0.15,0.60"
        ) from None
