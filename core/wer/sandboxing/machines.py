"""What a sandbox plugin brings: a way to start a worker, and to hear how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol, TypeVar

from attrs import frozen

T = TypeVar("T")


@frozen
class Death:
    """How a worker ended.

    Attributes:
        cause: As in `SandboxError.cause`.
        story: One line, for example ``exit status 1``.
        words: The end of what it wrote to stderr.
    """

    cause: str
    story: str
    words: str


async def unbroken(work: Awaitable[T]) -> T:
    """See work through to its end even when the waiting task is cancelled, which it then is.

    Half a start or half a removal would leave something on the machine.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class Machine(Protocol):
    """Runs one worker: a process, or a container."""

    async def ended(self) -> None:
        """Return when the worker is no more."""
        ...

    async def autopsy(self) -> Death:
        """Say how the worker ended, or what state it is in. Never raises."""
        ...

    async def remove(self) -> None:
        """Kill the worker with everything in it, and leave nothing. Safe to call twice."""
        ...


class Launcher(Protocol):
    """Starts workers of one spec.

    Attributes:
        shared: True when workers run as another user, so that the socket must be open to all.
        isolation: What surrounds each worker, for reports.
    """

    shared: bool
    isolation: str

    async def launch(self, folder: Path, key: str) -> Machine:
        """Start one worker that dials the socket in the folder and shows the key.

        Raises:
            SandboxError: With ``cause="start"``.
        """
        ...

    async def close(self) -> None:
        """Free what starting workers needed; called once, when the pool closes."""
        ...
