"""The server's half of MCP: the episode's tools, and the skill as a resource, as JSON-RPC 2.0.

The protocol's own words: https://modelcontextprotocol.io/specification/2025-06-18 (lifecycle,
tools, resources). Nothing is kept between two requests, so one answer a request is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from wer.records import Json, JsonObject, ToolCall
from wer.skills import render_skill_md
from wer_agents.visit import Visit

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol; all that is said here is alike in them."""

_USUAL = "2025-06-18"
_INVALID_REQUEST = -32600
_UNKNOWN_METHOD = -32601
_INVALID_PARAMS = -32602


class _Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def respond(visit: Visit, message: Json) -> JsonObject | None:
    """Answer one message; None where the protocol has no answer."""
    if not isinstance(message, Mapping) or not isinstance(message.get("method"), str):
        answers = isinstance(message, Mapping) and ("result" in message or "error" in message)
        return None if answers else failed(None, _INVALID_REQUEST, "expected one JSON-RPC request")
    if "id" not in message:
        return None
    params = message.get("params") or {}
    try:
        if not isinstance(params, Mapping):
            raise _Refused(_INVALID_PARAMS, "params must be an object")
        result = await _result(visit, message["method"], params)
    except _Refused as refused:
        return failed(message["id"], refused.code, str(refused))
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def failed(request: Json, code: int, words: str) -> JsonObject:
    """Say that a request failed."""
    return {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": words}}


async def _result(visit: Visit, method: str, params: JsonObject) -> JsonObject:
    match method:
        case "initialize":
            return _hello(visit, params)
        case "ping":
            return {}
        case "tools/list":
            return {"tools": _tools(visit)}
        case "tools/call":
            return await _call(visit, params)
        case "resources/list":
            return {"resources": _resources(visit)}
        case "resources/read":
            return _read(visit, params)
    raise _Refused(_UNKNOWN_METHOD, f"no method {method!r} here")


def _hello(visit: Visit, params: JsonObject) -> JsonObject:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else _USUAL,
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "wer", "version": version("wer-skills")},
        "instructions": visit.task.context,
    }


def _tools(visit: Visit) -> list[JsonObject]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": {"type": "object", **tool.parameters},
        }
        for tool in visit.task.tools
    ]


async def _call(visit: Visit, params: JsonObject) -> JsonObject:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise _Refused(_INVALID_PARAMS, "a call has a name and an object of arguments")
    answer = await visit.call(ToolCall(name=name, arguments=arguments))
    if answer is None or not answer.observations:
        return _told("the episode is over: no tool can be called any more", ok=False)
    observation = answer.observations[0]
    return _told(observation.text, ok=observation.ok)


def _told(text: str, *, ok: bool) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": not ok}


def _resources(visit: Visit) -> list[JsonObject]:
    skill = visit.skill
    if skill.empty:
        return []
    return [
        {
            "uri": _uri(visit),
            "name": skill.name,
            "description": skill.description,
            "mimeType": "text/markdown",
        }
    ]


def _read(visit: Visit, params: JsonObject) -> JsonObject:
    if visit.skill.empty or params.get("uri") != _uri(visit):
        raise _Refused(_INVALID_PARAMS, f"no resource {str(params.get('uri'))[:200]!r}")
    visit.loaded = True
    text = render_skill_md(visit.skill)
    return {"contents": [{"uri": _uri(visit), "mimeType": "text/markdown", "text": text}]}


def _uri(visit: Visit) -> str:
    return f"skill://{visit.skill.name}/SKILL.md"
