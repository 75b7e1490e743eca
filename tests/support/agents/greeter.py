"""A program that greets whom it is told to, over MCP, and does what else its arguments say."""

import json
import os
import sys
import urllib.request
from pathlib import Path

TURN = json.loads(Path(os.environ["WER_TURN"]).read_text("utf-8"))
WAYS = sys.argv[1:]
BROWSER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(url, body, token=TURN["mcp"]["token"]):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with BROWSER.open(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def mcp(method, **params):
    return post(TURN["mcp"]["url"], {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def greet(name):
    return mcp("tools/call", name="greet", arguments={"name": name})["result"]["content"][0]["text"]


if "resource" in WAYS:
    for resource in mcp("resources/list")["result"]["resources"]:
        mcp("resources/read", uri=resource["uri"])
answer = greet(TURN["message"].strip(".").split()[-1])
while "on-and-on" in WAYS:
    greet("again")
if "model" in WAYS:
    folder = TURN["skill"]["folder"]
    skill = Path(folder, "SKILL.md").read_text("utf-8") if folder and "skilled" in WAYS else ""
    asked = [{"role": "system", "content": skill}, {"role": "user", "content": TURN["message"]}]
    try:
        post(f"{TURN['model']['url']}/chat/completions", {"model": "m", "messages": asked})
    except OSError as error:
        print(error, file=sys.stderr)
if "tell" in WAYS:
    Path(TURN["outcome"]).write_text(
        json.dumps({"usage": {"prompt_tokens": 7, "completion_tokens": 3}, "skill_loaded": True})
    )
if "remember" in WAYS:
    answer = json.dumps([TURN["history"], sorted(map(str, Path().iterdir())), TURN["seed"], TURN["task"]])
    Path(f"note-{len(TURN['history'])}").touch()
print(answer)
