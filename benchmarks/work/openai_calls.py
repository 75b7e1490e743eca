"""The same calls through the official client."""

from __future__ import annotations

import asyncio

from bench_prompt import MESSAGES, TOOLS
from child import answer, asked, cpu_s, wall_s
from openai import AsyncOpenAI


async def main() -> None:
    """Ask as often as told, so many at a time."""
    left = iter(range(asked("calls")))
    client = AsyncOpenAI(base_url=asked("url"), api_key="none", max_retries=3)

    async def work() -> None:
        for number in left:
            await client.chat.completions.create(
                model="mock", messages=MESSAGES, tools=TOOLS, temperature=0.7, seed=number, max_tokens=1024
            )

    cpu, began = cpu_s(), wall_s()
    await asyncio.gather(*(work() for _ in range(asked("concurrency"))))
    answer(calls=asked("calls"), wall_s=wall_s() - began, cpu_s=cpu_s() - cpu)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
