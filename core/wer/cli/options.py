"""The words that several commands share, each with the help that every one of them shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

Env = Annotated[
    list[str] | None, Parameter(name="--env", help="Environment, for example bfcl. Repeat for several.")
]
Domains = Annotated[
    str | None,
    Parameter(help="Domains, separated by commas, for example file_system,trading_bot. Default: all."),
]
Backend = Annotated[
    str | None, Parameter(help="Who trains the writer: prompted (nobody), grpo, or an installed plugin.")
]
Writer = Annotated[
    str | None, Parameter(help="The model that writes skills, provider/name[@url]. Default: the executor's.")
]
ExecutorModel = Annotated[
    str | None,
    Parameter(
        name="--executor",
        help="The frozen agent's model: openai/gpt-4o-mini, openai/NAME@http://127.0.0.1:8000/v1, "
        "litellm/anthropic/NAME, local/qwen2.5-coder-0.5b.",
    ),
]
SandboxName = Annotated[
    str | None, Parameter(name="--sandbox", help="auto, docker or process. Default: auto.")
]
VerifierName = Annotated[
    str | None, Parameter(name="--verifier", help="Who judges. Default: the environment's own verifier.")
]
Preset = Annotated[
    str | None,
    Parameter(help="cpu (15 minutes, no key), cpu-long (a night), or paper (the paper's settings)."),
]
ConfigFile = Annotated[
    Path | None, Parameter(name="--config", help="A wer.toml. Default: ./wer.toml when it exists.")
]
Sets = Annotated[
    list[str] | None,
    Parameter(name="--set", help="Any setting: --set training.k=8. Repeat for several.", negative=()),
]
Seed = Annotated[int | None, Parameter(help="Seed of every die that is rolled. Default: 0.")]
MaxRollouts = Annotated[int | None, Parameter(help="Stop, resumably, after so many rollouts.")]
MaxTokens = Annotated[
    int | None, Parameter(help="Stop, resumably, after so many tokens, all roles together.")
]
MaxCost = Annotated[
    float | None, Parameter(help="Stop, resumably, after so many US dollars, all roles together.")
]
Runs = Annotated[Path, Parameter(help="Where run folders are.")]


def overrides(**given: Any) -> dict[str, Any]:
    """Options as dotted configuration keys; what wasn't given is left to preset and file."""
    renamed = {name.replace("__", "."): value for name, value in given.items() if value is not None}
    if "domains" in renamed:
        renamed["domains"] = [part.strip() for part in str(renamed["domains"]).split(",") if part.strip()]
    return renamed


def config_file(given: Path | None) -> Path | None:
    """The given file, or ``./wer.toml`` when there is one."""
    default = Path("wer.toml")
    return given or (default if default.is_file() else None)
