"""A plain loop around the openai library, on WER's tools: pip install wer-skills openai

    export AGENT_URL=https://api.openai.com/v1 AGENT_KEY=...
    wer eval SKILL.md --env examples/shop/shop.py:shop --executor examples/agents/openai_loop.py:agent

It is called once a turn. What it keeps in `memory` lasts for one conversation.
"""

import os

from openai import AsyncOpenAI

import wer


async def agent(
    turn: str,
    skill: str,
    tools: wer.Tools,
    context: str,
    memory: dict,
    seed: int,
    *,
    url: str | None = os.environ.get("AGENT_URL"),
    key: str | None = os.environ.get("AGENT_KEY"),
    model: str = "gpt-4o-mini",
) -> wer.Outcome:
    """Ask the model until it calls no more tools."""
    messages = memory.setdefault("messages", [{"role": "system", "content": f"{context}\n\n{skill}".strip()}])
    messages.append({"role": "user", "content": turn})
    used = wer.Usage(usd=None)
    async with AsyncOpenAI(base_url=url, api_key=key) as client:
        while True:
            reply = await client.chat.completions.create(
                model=model, messages=messages, tools=tools.openai(), seed=seed
            )
            used += wer.Usage(
                calls=1,
                prompt_tokens=reply.usage.prompt_tokens,
                completion_tokens=reply.usage.completion_tokens,
                usd=None,
            )
            message = reply.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                return wer.Outcome(message.content or "", usage=used)
            for call in message.tool_calls:
                seen = await tools.call(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": seen})
