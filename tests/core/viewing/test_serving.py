"""Who may look: a loopback name, the token or its cookie, and reading alone."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from support.viewed import recorded

from wer.errors import WerError
from wer.viewing.serving import Viewer, bound

TOKEN = "a-token-of-a-test"
COOKIE = f"wer_view_8000={TOKEN}"


@pytest.fixture
def asked(tmp_path):
    """Ask the application as a browser on port 8000 would; gives status, headers and body."""
    folder = recorded(tmp_path)
    viewer = Viewer(token=TOKEN, first=folder.name, runs=lambda: [folder])
    app = viewer.app()

    async def ask(path, *, query="", host="127.0.0.1:8000", cookie=COOKIE, method="GET"):
        headers = [(b"host", host.encode()), (b"cookie", cookie.encode("latin-1"))]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.replace("RUN", folder.name).encode(),
            "headers": headers,
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "root_path": "",
            "http_version": "1.1",
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:])

    return ask


async def test_the_token_is_changed_for_a_cookie_that_scripts_cannot_read(asked):
    status, headers, _ = await asked("/", query=f"token={TOKEN}", cookie="")

    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"].startswith(f"{COOKIE}; HttpOnly")
    assert "SameSite=strict" in headers["set-cookie"]


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/runs", "/api/overview"])
@pytest.mark.parametrize(
    ("query", "cookie"),
    [("", ""), ("token=guessed", ""), ("", "wer_view_8000=x"), ("token=%C3%A9", "a=\xe9")],
)
async def test_without_token_and_cookie_nothing_is_shown(asked, path, query, cookie):
    status, headers, body = await asked(path, query=query, cookie=cookie)

    assert status == 401
    assert b"open the address that wer view printed" in body
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example:8000", "127.0.0.1.evil.example", "", "10.0.0.1:8000", "localhost@evil"]
)
async def test_a_foreign_name_of_this_machine_is_refused_whoever_asks(asked, host):
    status, _, _ = await asked("/api/runs", host=host)

    assert status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9000", "[::1]:8000", "localhost"])
async def test_loopback_names_are_served_on_any_port_that_was_forwarded(asked, host):
    status, _, _ = await asked("/api/runs", host=host)

    assert status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_nothing_can_be_sent(asked, method):
    status, _, _ = await asked("/api/overview", query="run=RUN", method=method)

    assert status == 405


async def test_the_page_may_run_its_own_scripts_alone(asked):
    status, headers, body = await asked("/")

    assert status == 200
    assert b"<script" in body
    assert b"http:" not in body and b"https:" not in body
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["..%2f..%2fserving.py", "../serving.py", "serving.py", "nothing.js", "..", "%00.js"]
)
async def test_only_files_of_the_page_are_served(asked, name):
    status, _, _ = await asked(f"/page/{name}")

    assert status == 404


async def test_answers_come_as_json_and_again_from_memory(asked):
    first = await asked("/api/overview", query="run=RUN")
    second = await asked("/api/overview", query="run=RUN")

    assert first[0] == second[0] == 200
    assert first[1]["content-type"] == "application/json"
    assert json.loads(first[2]) == json.loads(second[2])


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("/api/overview", "run=../x", "there is no run"),
        ("/api/overview", "", "there is no run"),
        ("/api/secrets", "run=RUN", "never asked for"),
        ("/api/rollout", "run=RUN&key=x", "no rollout"),
    ],
)
async def test_what_is_not_there_is_said_as_json(asked, path, query, words):
    status, headers, body = await asked(path, query=query)

    assert (status, headers["content-type"]) == (404, "application/json")
    assert words in json.loads(body)["problem"]


async def test_the_list_of_runs_tells_where_each_stands(asked):
    _, _, body = await asked("/api/runs")

    [run] = json.loads(body)["rows"]
    assert (run["command"], run["environment"], run["at_work"]) == ("run", "counting", False)


def test_a_port_that_is_taken_is_named_with_what_to_do():
    with closing(bound(0)) as taken:
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(WerError, match=rf"port {port} of 127.0.0.1.*Choose another with --port"):
            bound(port)


def test_of_two_that_want_a_port_at_the_same_moment_one_is_told():
    with closing(bound(0)) as first, pytest.raises(WerError, match="Choose another with --port"):
        bound(first.getsockname()[1])


def test_a_port_that_is_no_port_is_refused():
    with pytest.raises(WerError, match="cannot listen on port 70000"):
        bound(70_000)
