"""An agent that is a program: it calls WER's tools over MCP and its model through WER's proxy, with plain Python.

Measure a skill of it, with any OpenAI-compatible model server in the place of this one:

    wer eval SKILL.md --env examples/shop/shop.py:shop \
        --executor 'command: python examples/command-agent/agent.py gpt-4o-mini' \
        --set executor_options.upstream=https://api.openai.com/v1 \
        --set executor_options.upstream_key=OPENAI_API_KEY

It knows its skill by name and description, and reads the rest when its model asks for it.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

TURN = json.loads(Path(os.environ["WER_TURN"]).read_text("utf-8"))
SKILL = TURN["skill"]
READ = {
    "name": "read_skill",
    "description": "Read how it is done.",
    "parameters": {"type": "object", "properties": {}},
}
BROWSER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # all of it is on this machine


def post(url: str, token: str, body: dict) -> dict:
    """Send JSON, and read JSON."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
    with BROWSER.open(request) as answer:
        return json.load(answer)


def mcp(method: str, **params: object) -> dict:
    """Ask for the tools, or call one."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(TURN["mcp"]["url"], TURN["mcp"]["token"], message)["result"]


def tools() -> list[dict]:
    """The tools of this episode, as the model takes them; reading the skill is one, if there is a skill."""
    found = [
        {"name": each["name"], "description": each["description"], "parameters": each["inputSchema"]}
        for each in mcp("tools/list")["tools"]
    ]
    return [{"type": "function", "function": each} for each in [*found, *([READ] if SKILL["folder"] else [])]]


def use(name: str, arguments: str) -> str:
    """Do what the model asked for."""
    if name == READ["name"]:
        return Path(SKILL["folder"], "SKILL.md").read_text("utf-8")
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return "the arguments are not JSON"
    return mcp("tools/call", name=name, arguments=given)["content"][0]["text"]


def main(model: str) -> str:
    """Work until the model only talks."""
    about = f"You have a skill, {SKILL['name']}: {SKILL['description']}" if SKILL["folder"] else ""
    system = "\n\n".join(filter(None, [TURN["task"]["context"], about]))
    messages = [{"role": "system", "content": system}] if system else []
    messages += [*TURN["history"], {"role": "user", "content": TURN["message"]}]
    offered = tools()
    while True:
        asked = {"model": model, "messages": messages, "tools": offered, "seed": TURN["seed"]}
        answer = post(f"{TURN['model']['url']}/chat/completions", TURN["model"]["token"], asked)
        reply = answer["choices"][0]["message"]
        messages.append(reply)
        if not reply.get("tool_calls"):
            return reply["content"] or ""
        for call in reply["tool_calls"]:
            result = use(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if __name__ == "__main__":
    print(main(sys.argv[1]))
