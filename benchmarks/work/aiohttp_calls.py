"""The same calls through aiohttp alone: what the fastest client costs that does nothing else."""

from __future__ import annotations

import asyncio
import json

import aiohttp
from bench_prompt import BODY
from child import answer, asked, cpu_s, wall_s


async def main() -> None:
    """Ask as often as told, so many at a time."""
    left = iter(range(asked("calls")))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as client:

        async def work() -> None:
            for _ in left:
                async with client.post(f"{asked('url')}/chat/completions", json=BODY) as response:
                    json.loads(await response.read())

        cpu, began = cpu_s(), wall_s()
        await asyncio.gather(*(work() for _ in range(asked("concurrency"))))
        answer(calls=asked("calls"), wall_s=wall_s() - began, cpu_s=cpu_s() - cpu)


if __name__ == "__main__":
    asyncio.run(main())
