"""Packages for sandboxes: fetched once, whole or not at all, and never into the user's environment."""

import sys
import threading
import zipfile

import pytest

from wer import wheels
from wer.errors import WerError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder that pip takes for the whole world."""
    folder = tmp_path / "shop"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_demo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_demo.py", "ANSWER = 42\n")
        wheel.writestr(
            "tiny_demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-demo\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_demo-1.0.dist-info/RECORD", "")
    for name in ("PIP_CONFIG_FILE",):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_wheels_are_fetched_once_and_then_without_the_network(cache, shop):
    folder = wheels.fetch(["tiny-demo==1.0"])
    (shop / "tiny_demo-1.0-py3-none-any.whl").unlink()

    assert wheels.fetch(["tiny-demo==1.0"]) == folder
    assert [path.name for path in folder.iterdir()] == ["tiny_demo-1.0-py3-none-any.whl"]


def test_installed_requirements_stand_alone(cache, shop):
    folder = wheels.install(["tiny-demo==1.0"])

    assert (folder / "tiny_demo.py").is_file()
    assert "tiny_demo" not in sys.modules


def test_a_missing_package_is_named_and_leaves_no_half_folder(cache, shop):
    with pytest.raises(WerError, match=r"could not get no-such-thing==9"):
        wheels.fetch(["no-such-thing==9"])

    assert not [path for path in (cache / "wheels").iterdir() if path.suffix != ".lock"]


def test_an_interpreter_without_pip_gets_the_remedy(cache, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))

    with pytest.raises(WerError, match="python -m ensurepip"):
        wheels.fetch(["tiny-demo==1.0"])


def test_a_requirement_is_never_taken_for_an_option(cache, shop):
    with pytest.raises(WerError):
        wheels.fetch(["--index-url=http://127.0.0.1:9/"])


def test_two_who_want_the_same_folder_make_it_once(cache):
    made = []

    def make(folder):
        made.append(folder)
        (folder / "file").write_text("whole")

    threads = [threading.Thread(target=wheels.once, args=(cache / "things" / "one", make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 1
    assert (cache / "things" / "one" / "file").read_text() == "whole"
