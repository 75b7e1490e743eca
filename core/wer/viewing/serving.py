"""The local server of the page: loopback only, a token once and a cookie then, and nothing but reading.

What it shows was written by models, so the page may run its own scripts and nothing else.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from attrs import define, field
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wer.errors import WerError
from wer.records import JsonObject
from wer.viewing.answers import answer, run_list
from wer.viewing.overview import pulse
from wer.viewing.reading import NotThere, encoded

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_KEPT = 64


@define(kw_only=True)
class Viewer:
    """What the server shows.

    Attributes:
        token: Who has it may look.
        first: Name of the run to begin with; empty is the list of runs.
        runs: The folders to choose from, newest first, asked anew each time.
    """

    token: str
    first: str
    runs: Callable[[], Sequence[Path]]
    _answers: OrderedDict[tuple[str, ...], bytes] = field(factory=OrderedDict, init=False)

    def app(self) -> ASGIApp:
        """The application, with its guard around it."""
        routes = [
            Route("/", self._page),
            Route("/page/{name}", self._asset),
            Route("/api/runs", self._runs),
            Route("/api/pulse", self._pulse),
            Route("/api/{name}", self._answer),
        ]
        return _Guard(app=Starlette(routes=routes), token=self.token)

    def _page(self, _: Request) -> Response:
        return _asset("index.html")

    def _asset(self, request: Request) -> Response:
        return _asset(request.path_params["name"])

    def _runs(self, request: Request) -> Response:
        return _told(lambda: {**run_list(self.runs(), request.query_params), "first": self.first})

    def _pulse(self, request: Request) -> Response:
        return _told(lambda: pulse(self._folder(request)))

    def _answer(self, request: Request) -> Response:
        return _told(lambda: self._remembered(request))

    def _folder(self, request: Request) -> Path:
        wanted = request.query_params.get("run", "")
        for folder in self.runs():
            if folder.name == wanted:
                return folder
        raise NotThere(f"there is no run {wanted[:80]!r} here (any more). Go back to the list of runs.")

    def _remembered(self, request: Request) -> bytes:
        """An answer, made again only when the run has got something new since."""
        folder = self._folder(request)
        key = (folder.name, str(pulse(folder)), request.path_params["name"], str(request.query_params))
        found = self._answers.get(key)
        if found is None:
            found = encoded(answer(folder, request.path_params["name"], dict(request.query_params)))
            self._answers[key] = found
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return found


def bound(port: int) -> socket.socket:
    """Take a port of the loopback interface; 0 is any that is free.

    Raises:
        WerError: It is taken, or may not be had.
    """
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", port))
        taken.listen()  # now, because two may be bound to a port as long as neither of them listens
    except (OSError, OverflowError) as error:
        taken.close()
        raise WerError(
            f"cannot listen on port {port} of 127.0.0.1 ({error}). Choose another with --port, or leave it out for "
            "any that is free."
        ) from error
    return taken


def new_token() -> str:
    """A token that can't be guessed, fit for an address."""
    return secrets.token_urlsafe(24)


def serve(viewer: Viewer, listening: socket.socket, *, began: Callable[[], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        began: Called when the page can be asked for.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            began()

    settings = uvicorn.Config(
        viewer.app(),
        log_level="error",  # what strangers send is no concern of the user's
        access_log=False,  # addresses have the token in them
        ws="none",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    Server(settings).run(sockets=[listening])


@define(kw_only=True)
class _Guard:
    """Lets in who asks a loopback name, and has the token or the cookie that it was changed for."""

    app: ASGIApp
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        response = self._refusal(request) or self._admission(request)
        if response is not None:
            response.headers.update(_HEADERS)
            await response(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = Headers(raw=message["headers"])
                more = [
                    (name.encode(), value.encode()) for name, value in _HEADERS.items() if name not in told
                ]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self.app(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name not in _LOOPBACK:  # a foreign name that resolves to this machine: DNS rebinding
            return _words("this server answers to 127.0.0.1 and localhost alone.", 421)
        if request.method != "GET":
            return _words("this server is only read from.", 405)
        return None

    def _admission(self, request: Request) -> Response | None:
        """Change the token for a cookie, so that it stays in no address; or refuse who has neither."""
        port = (request.scope.get("server") or ("", 0))[1]
        cookie = f"wer_view_{port}"
        if self._knows(request.query_params.get("token", "")):
            response = RedirectResponse("/", status_code=303)
            response.set_cookie(cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        if self._knows(request.cookies.get(cookie, "")):
            return None
        return _words("open the address that wer view printed: it has a token in it.", 401)

    def _knows(self, word: str) -> bool:
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.token.encode())


def _told(make: Callable[[], JsonObject | bytes]) -> Response:
    """An answer as JSON, or in words why there is none."""
    try:
        found = make()
    except WerError as error:
        status = 404 if isinstance(error, NotThere) else 409
        return Response(encoded({"problem": str(error)}), status, media_type="application/json")
    return Response(found if isinstance(found, bytes) else encoded(found), media_type="application/json")


def _asset(name: str) -> Response:
    kind = _KINDS.get(Path(name).suffix)
    file = resources.files("wer.viewing") / "page" / Path(name).name
    if kind is None or not file.is_file():
        return _words("there is no such file.", 404)
    return Response(file.read_bytes(), media_type=f"{kind}; charset=utf-8")


def _words(text: str, status: int) -> Response:
    return Response(f"wer: {text}\n", status, media_type="text/plain; charset=utf-8")
