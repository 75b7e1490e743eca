"""A pool for those who may never need one: it starts with the first episode that is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from wer.contracts import Episode, Pool


class PoolLater:
    """A `wer.contracts.Pool` that has no workers yet.

    Args:
        start: Starts the pool; called at the first lease, and again if it failed.
    """

    def __init__(self, start: Callable[[], Awaitable[Pool]]) -> None:
        self._start = start
        self._starting = asyncio.Lock()
        self._pool: Pool | None = None

    @property
    def tier(self) -> str:
        """That of the pool inside, once there is one."""
        return self._pool.tier if self._pool is not None else "not started"

    async def lease(self) -> Episode:
        """Fork a fresh episode; see `wer.contracts.Pool`."""
        async with self._starting:
            if self._pool is None:
                self._pool = await self._start()
        return await self._pool.lease()

    async def close(self) -> None:
        """Stop what was started, if anything was."""
        if self._pool is not None:
            await self._pool.close()
