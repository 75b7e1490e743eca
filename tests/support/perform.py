"""Runs the protocol over the counting world: in this process, or as ``wer`` in one that a test can kill."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

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


MOMENTS: Mapping[str, tuple[str, str, Callable[..., bool]]] = {
    "draft": ("wer.store", "Store.put_document", lambda self, purpose, *_: purpose == "seed"),
    "merge": ("wer.store", "Store.put_document", lambda self, purpose, *_: purpose == "merge"),
    "rollout": ("support.counting", "Counter.execute", lambda *_: True),
    "refinement": ("wer.store", "Store.put_group", lambda self, stage, *_: stage.startswith("refine/")),
    "trained refinement": ("wer.store", "Store.put_group", lambda self, stage, *_: "/refined/" in stage),
    "test rollout": ("support.counting", "Counter.execute", lambda self, task, *_: task.split == "test"),
    "results": ("wer.store", "Store.put_results", lambda *_: True),
    "sampling": ("wer_grpo.policy", "Policy.choose_support", lambda *_: True),
    "update": ("torch.optim", "AdamW.step", lambda *_: True),
    "half a checkpoint": ("torch", "save", lambda *_: True),
    "half a model": ("transformers", "PreTrainedModel.save_pretrained", lambda *_: True),
}
"""Where a program can be told to die: module, what is called there, and which of its calls count."""


def program(words: Sequence[str], *, log: Path, fuse: tuple[str, int] | None = None) -> BaseProcess:
    """Start ``wer WORDS`` in a process of its own, with the counting world among its plugins.

    Args:
        log: Gets the key of every rollout that is really run; what is printed goes beside it.
        fuse: A moment and how many times it is to come: then the process kills itself, as
            ``kill -9`` does.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.perform", "wer_grpo.optimizer", "wer.cli.run"])
    process = context.Process(target=_main, args=(tuple(words), log, fuse))
    process.start()
    return process


def _main(words: Sequence[str], log: Path, fuse: tuple[str, int] | None) -> None:
    printed = os.open(log.with_suffix(".txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    plugins.load = functools.partial(plugins.load, extra=(counting, _observer(log)))  # type: ignore[assignment]
    if fuse is not None:
        _light(*fuse)

    from wer.cli import main

    main(words)


def _light(moment: str, count: int) -> None:
    module, path, counts = MOMENTS[moment]
    *owners, name = path.split(".")
    owner: Any = functools.reduce(getattr, owners, import_module(module))
    original = getattr(owner, name)
    left = count

    @functools.wraps(original)
    def burning(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= counts(*arguments)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(owner, name, burning)


def _observer(log: Path) -> ModuleType:
    module = ModuleType("observer")

    @hookimpl
    def wer_rollout_finished(rollout: object, cached: bool) -> None:
        if not cached:
            with log.open("a") as file:
                file.write(f"{rollout.key}\n")  # type: ignore[attr-defined]

    module.wer_rollout_finished = wer_rollout_finished  # type: ignore[attr-defined]
    return module
