"""An agent of the OpenAI Agents SDK with tools of its own: pip install wer-skills openai-agents

export AGENT_URL=https://api.openai.com/v1 AGENT_KEY=...
wer eval SKILL.md --env examples/agents/refunds.py:refunds --executor examples/agents/agents_sdk.py:agent
"""

import copy
import os

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from refunds import POLICY, tools_on

import wer


async def agent(
    task,
    skill: str,
    seed: int,
    *,
    url: str | None = os.environ.get("AGENT_URL"),
    key: str | None = os.environ.get("AGENT_KEY"),
    model: str = "gpt-4o-mini",
) -> wer.Outcome:
    """Run the agent on one task, and tell its conversation and what became of the orders."""
    orders = copy.deepcopy(task.state)
    async with AsyncOpenAI(base_url=url, api_key=key) as client:
        clerk = Agent(
            name="clerk",
            instructions=f"{POLICY}\n\n{skill}".strip(),
            tools=[function_tool(each) for each in tools_on(orders)],
            model=OpenAIChatCompletionsModel(model, openai_client=client),
            model_settings=ModelSettings(extra_args={"seed": seed}),
        )
        # Without this the SDK sends every conversation to OpenAI's tracing.
        end = await Runner.run(clerk, task.query, run_config=RunConfig(tracing_disabled=True))

    used = end.context_wrapper.usage
    usage = wer.Usage(
        calls=used.requests, prompt_tokens=used.input_tokens, completion_tokens=used.output_tokens, usd=None
    )
    return wer.Outcome(end.to_input_list(), orders, usage=usage)
