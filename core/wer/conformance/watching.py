"""What a part's code on the host does beyond its own memory, heard from the interpreter itself."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from wer.paths import cache_dir
from wer_sandbox.probe import attempt

_heard: ContextVar[tuple[str, list[str]] | None] = ContextVar("heard", default=None)
"""The folder in which anything may be done, and what is done elsewhere."""


@contextmanager
def watching() -> Iterator[list[str]]:
    """Note the files that the block opens for writing, what it connects to, and what it starts.

    Only this context counts: what other coroutines do meanwhile does not. WER's cache, where
    parts may keep what can be made again, does not count either.
    """
    _listen()
    heard: list[str] = []
    token = _heard.set((str(cache_dir()), heard))
    try:
        yield heard
    finally:
        _heard.reset(token)


@cache
def _listen() -> None:
    """An audit hook stays for the life of the process, so there is only one."""

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        listening = _heard.get()
        if listening is None:
            return
        here, heard = listening
        tried = attempt(event, arguments)
        if tried and not str(next(iter(arguments), "")).startswith(here):
            heard.append(tried)

    sys.addaudithook(hear)


async def held() -> tuple[set[int], set[str]]:
    """Child processes and sockets, once what is being closed is closed."""
    gc.collect()
    now = children(), sockets()
    for _ in range(50):
        await asyncio.sleep(0.02)
        before, now = now, (children(), sockets())
        if before == now:
            break
    return now


def children() -> set[int]:
    """Pids of this process's children. Empty where there is no ``/proc``."""
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        found |= {int(pid) for pid in file.read_text().split()}
    return found


def sockets() -> set[str]:
    """This process's open sockets. Empty where there is no ``/proc``."""
    found = set()
    for link in Path("/proc/self/fd").glob("*"):
        try:
            target = str(link.readlink())
        except OSError:
            continue  # closed in the meantime
        if target.startswith("socket:"):
            found.add(target)
    return found
