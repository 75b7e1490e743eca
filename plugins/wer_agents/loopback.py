"""The one door to a rollout from outside of WER: its tools over MCP, and the model behind the recording proxy.

It is open on the loopback while the rollout lasts, on a port that the system chooses, and
answers only to the rollout's own token.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from aiohttp import web
from attrs import frozen

from wer.chat import loads
from wer.contracts import AgentSetup
from wer_agents import mcp
from wer_agents.proxy import Proxy, refusal
from wer_agents.upstream import Upstream
from wer_agents.visit import Visit

_BODY_BYTES = 16 << 20
_PARSE_ERROR = -32700


@frozen(kw_only=True)
class Door:
    """Where an open rollout is reached.

    Attributes:
        url: ``http://127.0.0.1:PORT``.
        proxy: The model's, if the user named a model server.
    """

    url: str
    proxy: Proxy | None

    @property
    def mcp_url(self) -> str:
        """Of the tools, for streamable HTTP."""
        return f"{self.url}/mcp"

    @property
    def model_url(self) -> str:
        """Base address of the model, up to and with ``/v1``; empty without one."""
        return f"{self.url}/v1" if self.proxy else ""


@asynccontextmanager
async def opened(visit: Visit, upstream: Upstream | None, setup: AgentSetup) -> AsyncIterator[Door]:
    """Serve one rollout; calls of a model that are still open at the end are dropped.

    Args:
        upstream: The user's model server, to be reached through the proxy.
        setup: Says what may be spent, and is told what was.
    """
    async with AsyncExitStack() as stack:
        proxy = None
        if upstream is not None:
            client = await stack.enter_async_context(upstream.client())
            proxy = Proxy(
                upstream=upstream,
                record=visit.record,
                client=client,
                check=setup.check,
                charge=setup.charge,
            )
        runner = web.AppRunner(
            _application(visit, proxy), access_log=None, handler_cancellation=True, shutdown_timeout=0.05
        )
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Door(url=f"http://127.0.0.1:{runner.addresses[0][1]}", proxy=proxy)


def _application(visit: Visit, proxy: Proxy | None) -> web.Application:
    @web.middleware
    async def guard(request: web.Request, handler: Any) -> Any:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {visit.token}".encode()):
            return refusal(401, "unknown token: each rollout has its own, and it ends with the rollout")
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return refusal(404, _nothing(request.path, proxy))

    async def tools(request: web.Request) -> web.Response:
        return await _tools(visit, request)

    app = web.Application(middlewares=[guard], client_max_size=_BODY_BYTES)
    app.router.add_post("/mcp", tools)
    if proxy is not None:
        app.router.add_post("/v1/chat/completions", proxy.complete)
        app.router.add_get("/v1/models", proxy.models)
    return app


async def _tools(visit: Visit, request: web.Request) -> web.Response:
    """One message of MCP, answered at once: there are no streams to subscribe to."""
    try:
        message = loads((await request.read()).decode("utf-8"))
    except ValueError:
        return web.json_response(mcp.failed(None, _PARSE_ERROR, "the body is not JSON"), status=400)
    answer = await mcp.respond(visit, message)
    return web.Response(status=202) if answer is None else web.json_response(answer)


def _nothing(path: str, proxy: Proxy | None) -> str:
    if path.startswith("/v1/") and proxy is None:
        return "no model is served here: set executor_options.upstream to your model server"
    return f"nothing is served at {path[:200]!r}: there are /mcp, /v1/chat/completions and /v1/models"
