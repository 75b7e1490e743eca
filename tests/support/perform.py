"""Runs the protocol over the counting world; as a program, so that a test can kill it.

``python perform.py FOLDER LOG`` appends the key of every rollout that was really run to LOG.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType

from rich.console import Console
from support import counting

from wer import hookimpl, plugins
from wer.configuration import RunConfig, resolve
from wer.display import Display
from wer.loop.opening import opened
from wer.loop.running import run_protocol
from wer.store import Store


def configured(**overrides: object) -> RunConfig:
    """A run over the counting world, small by default; dots in keys are written as two underscores."""
    return resolve(
        None,
        None,
        (),
        {
            "env": ["counting"],
            "executor": "scribe/a",
            "agent": "counter",
            "sandbox": "memory",
            "training.phases": 2,
            "evaluation.trials": 2,
            **{key.replace("__", "."): value for key, value in overrides.items()},
        },
    )


def perform(folder: Path, config: RunConfig, *, extra: tuple[ModuleType, ...] = ()) -> Store:
    """Do the whole protocol in a folder and give its store."""
    folder.mkdir(exist_ok=True)
    store = Store(folder / "wer.sqlite", create=True)
    found = plugins.load(extra=(counting, *extra))

    async def run() -> None:
        with Display(Console(quiet=True)) as display:
            async with opened(
                config, folder=folder, store=store, plugins=found, display=display
            ) as opened_run:
                await run_protocol(opened_run)

    asyncio.run(run())
    return store


def _observer(log: Path) -> ModuleType:
    module = ModuleType("observer")

    @hookimpl
    def wer_rollout_finished(rollout: object, cached: bool) -> None:
        if not cached:
            with log.open("a") as file:
                file.write(f"{rollout.key}\n")  # type: ignore[attr-defined]

    module.wer_rollout_finished = wer_rollout_finished  # type: ignore[attr-defined]
    return module


if __name__ == "__main__":
    perform(Path(sys.argv[1]), configured(), extra=(_observer(Path(sys.argv[2])),)).close()
