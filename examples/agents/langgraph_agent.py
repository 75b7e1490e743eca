"""A LangGraph agent with tools of its own: pip install wer-skills langgraph langchain-openai

export AGENT_URL=https://api.openai.com/v1 AGENT_KEY=...
wer eval SKILL.md --env examples/agents/refunds.py:refunds --executor examples/agents/langgraph_agent.py:agent
"""

import copy
import os

from langchain_core.messages import SystemMessage, convert_to_openai_messages
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
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
    """Run the graph on one task, and tell its conversation and what became of the orders."""
    orders = copy.deepcopy(task.state)
    tools = tools_on(orders)
    prompt = SystemMessage(f"{POLICY}\n\n{skill}".strip())
    chat = ChatOpenAI(model=model, base_url=url, api_key=key, seed=seed).bind_tools(tools)

    async def think(state: MessagesState) -> dict:
        return {"messages": [await chat.ainvoke([prompt, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    end = await graph.compile().ainvoke({"messages": [("user", task.query)]})

    replies = [each.usage_metadata for each in end["messages"] if getattr(each, "usage_metadata", None)]
    usage = wer.Usage(
        calls=len(replies),
        prompt_tokens=sum(each["input_tokens"] for each in replies),
        completion_tokens=sum(each["output_tokens"] for each in replies),
        usd=None,
    )
    return wer.Outcome(convert_to_openai_messages(end["messages"]), orders, usage=usage)
