"""What an audit event of Python says about the world outside the process."""

import os
import sqlite3

import pytest

from wer.conformance.watching import watching
from wer_sandbox.probe import attempt


@pytest.mark.parametrize(
    ("event", "arguments", "said"),
    [
        ("open", ("/tmp/a", "w", os.O_WRONLY | os.O_CREAT), "opened '/tmp/a' for writing"),
        ("open", ("/tmp/a", "r", os.O_RDONLY), ""),
        ("open", ("/x/__pycache__/a.pyc", "w", os.O_WRONLY), ""),
        ("open", ("/dev/null", "w", os.O_WRONLY), ""),
        ("os.mkdir", ("/tmp/a", 0o777, -1), "os.mkdir '/tmp/a'"),
        ("socket.connect", (object(), ("127.0.0.1", 9)), "socket.connect ('127.0.0.1', 9)"),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0), "socket.getaddrinfo 'example.org'"),
        ("os.fork", (), "os.fork"),
        ("compile", (None, "<string>"), ""),
        ("sqlite3.connect", (":memory:",), ""),
        ("sqlite3.connect", ("file:a?mode=ro",), ""),
        ("sqlite3.connect", ("a.db",), "opened the database 'a.db' for writing"),
    ],
)
def test_an_event_is_told_in_words_when_it_reaches_out(event, arguments, said):
    assert attempt(event, arguments) == said


def test_only_the_block_is_watched(tmp_path):
    with watching() as heard:
        (tmp_path / "inside").write_text("x")
        sqlite3.connect(":memory:").close()
    (tmp_path / "outside").write_text("x")

    assert heard == [f"opened '{tmp_path}/inside' for writing"]
