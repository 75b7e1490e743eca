"""Runs the protocol over the counting world: in this process, or as ``wer`` in one that a test can kill."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from support import counting, paying, stairs

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
    "rollout": ("wer.loop.local", "LocalRunner.execute", lambda *_: True),
    "refinement": ("wer.store", "Store.put_group", lambda self, stage, *_: stage.startswith("refine/")),
    "trained refinement": ("wer.store", "Store.put_group", lambda self, stage, *_: "/refined/" in stage),
    "test rollout": ("wer.loop.local", "LocalRunner.execute", lambda self, unit: unit.task.split == "test"),
    "results": ("wer.store", "Store.put_results", lambda *_: True),
    "sampling": ("wer_grpo.policy", "Policy.choose_support", lambda *_: True),
    "update": ("torch.optim", "AdamW.step", lambda *_: True),
    "half a checkpoint": ("torch", "save", lambda *_: True),
    "half a model": ("transformers", "PreTrainedModel.save_pretrained", lambda *_: True),
    "question": ("wer.serving.client", "ServedModel.complete", lambda *_: True),
    "answer": ("wer.loop.ledger", "Ledger.charge", lambda *_: True),
    "depth": ("wer.store", "Store.put_document", lambda self, purpose, *_: purpose == "depth"),
    "verdict": ("wer.loop.local", "World.judge", lambda *_: True),
    "stored rollout": ("wer.display", "Display.rollout", lambda self, rollout, cached: not cached),
    "half a transaction": (
        "sqlalchemy.engine.default",
        "DefaultDialect.do_execute",
        lambda self, cursor, statement, *_: statement.startswith(("INSERT", "UPDATE")),
    ),
    "reward": ("wer.store", "Store.put_experience", lambda *_: True),
    "group": ("wer.store", "Store.put_group", lambda self, stage, *_: stage.startswith("train/")),
    "publishing": ("wer.loop.running", "save_skill", lambda *_: True),
    "report": ("wer.jobs", "write_report", lambda *_: True),
}
"""Where a program can be told to die: module, what is called there, and which of its calls count."""


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill_the_disk() -> None:
    """Let nothing more be written to any file; what is printed still gets to the log, by another process."""
    cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert cat.stdin is not None
    os.dup2(cat.stdin.fileno(), 1)
    os.dup2(cat.stdin.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def program(
    words: Sequence[str],
    *,
    log: Path,
    fuse: tuple[str, int] | None = None,
    worst: Callable[[], object] = _kill,
    diary: Sequence[str] = (),
) -> BaseProcess:
    """Start ``wer WORDS`` in a process of its own, with the counting world among its plugins.

    Args:
        log: Gets the key of every rollout that is really run; what is printed goes beside it.
        fuse: A moment and how many times it is to come: then the worst happens to the process.
        worst: What that is; by default the process kills itself, as ``kill -9`` does.
        diary: Moments that are written down beside the log, a line each time.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.perform", "wer_grpo.optimizer", "wer.cli.run"])
    process = context.Process(target=_main, args=(tuple(words), log, fuse, worst, tuple(diary)))
    process.start()
    return process


def _main(
    words: Sequence[str],
    log: Path,
    fuse: tuple[str, int] | None,
    worst: Callable[[], object],
    diary: Sequence[str],
) -> None:
    printed = os.open(log.with_suffix(".txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    plugins.load = functools.partial(plugins.load, extra=(counting, paying, stairs, _observer(log)))  # type: ignore[assignment]
    if fuse is not None:
        _light(*fuse, worst)
    for moment in diary:
        _watch(moment, functools.partial(_write_down, moment, log.with_suffix(".diary")))

    from wer.cli import main

    main(words)


def _light(moment: str, count: int, worst: Callable[[], object]) -> None:
    left = count

    def burn() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            worst()

    _watch(moment, burn)


def _watch(moment: str, tell: Callable[[], object]) -> None:
    module, path, counts = MOMENTS[moment]
    *owners, name = path.split(".")
    owner: Any = functools.reduce(getattr, owners, import_module(module))
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(*arguments: Any, **named: Any) -> Any:
        if counts(*arguments):
            tell()
        return original(*arguments, **named)

    setattr(owner, name, watched)


def _write_down(moment: str, diary: Path) -> None:
    with diary.open("a") as file:
        file.write(f"{moment}\n")


def _observer(log: Path) -> ModuleType:
    module = ModuleType("observer")

    @hookimpl
    def wer_rollout_finished(rollout: object, cached: bool) -> None:
        if not cached:
            with log.open("a") as file:
                file.write(f"{rollout.key}\n")  # type: ignore[attr-defined]

    module.wer_rollout_finished = wer_rollout_finished  # type: ignore[attr-defined]
    return module
