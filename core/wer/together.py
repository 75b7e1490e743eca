"""Work side by side: all of it is done, or the first failure is raised and the rest is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await everything concurrently and give the results in order.

    Nothing goes on running after a failure, unlike with `asyncio.gather`, and the failure
    itself is raised rather than a group of one.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as failures:
        leaf: Exception = failures
        while isinstance(leaf, ExceptionGroup):
            leaf = leaf.exceptions[0]
        raise leaf from None
    return [task.result() for task in tasks]
