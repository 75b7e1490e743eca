"""``wer plugin new``: a plugin that works, to be changed into the one that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import plugins, scaffolds

_WITH = {"verifier": " --env ENVIRONMENT", "model": " --model {}/NAME"}
"""What the check of a kind cannot do without."""


def new(
    name: str,
    *,
    kind: Annotated[
        scaffolds.Kind,
        Parameter(
            help="domain: tools, tasks and the check that judges them. verifier: a verdict over stored rollouts. "
            "optimizer: writes skills, and may learn. executor: the frozen agent around a model. "
            "model: a provider of models."
        ),
    ],
    into: Annotated[Path, Parameter(help="The package is made below this folder.")] = Path(),
) -> None:
    """Write a whole package that can be published, wer-plugin-NAME, with a small working example of its kind.

    It has an entry point, typed code, a README and tests, which pass at once. Change it step by step,
    and have `wer plugin check NAME` say what every part of its kind must do.

    Args:
        name: Of the plugin and of what it offers, such as help_desk: what users will write after --env,
            --verifier, --backend or --agent, or before a model's slash.
    """
    folder = scaffolds.write(name, kind, into=into, installed=plugins.load().listing())
    Console(highlight=False, soft_wrap=True).print(
        f"{folder}\n\n"
        f"pip install -e '{folder}[dev]'\n"
        f"pytest {folder}\n"
        f"wer plugin check {name}{_WITH.get(kind, '').format(name)}\n\n"
        f"Then change {folder / f'wer_{name}'} into what you want; README.md says what is where.",
        markup=False,
    )
