from __future__ import annotations

import sys
from typing import get_args

import pytest
from support.clean_venv import run

from wer import plugins, scaffolds
from wer.cli import main
from wer.errors import PluginError

KINDS = get_args(scaffolds.Kind)


def write(name, kind, into):
    return scaffolds.write(name, kind, into=into, installed=plugins.load().listing())


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_is_a_whole_package(kind, tmp_path):
    folder = write("my_part", kind, tmp_path)

    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert folder.name == "wer-plugin-my-part"
    assert written >= {
        ".gitignore",
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "tests/test_conformance.py",
        "wer_my_part/__init__.py",
        "wer_my_part/py.typed",
    }
    text = "".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())
    assert "$" not in text.replace("'$", "")
    assert 'my_part = "wer_my_part"' in text


def test_a_domain_with_its_verifier_is_30_lines_besides_the_tasks(tmp_path):
    folder = write("pantry", "domain", tmp_path)

    (code,) = (folder / "wer_pantry").glob("*.py")
    assert len([line for line in code.read_text("utf-8").splitlines() if line.strip()]) <= 30
    assert len((folder / "wer_pantry" / "tasks.jsonl").read_text("utf-8").splitlines()) >= 6


@pytest.mark.parametrize(
    "name", ["", "1st", "Shop", "my-shop", "my__shop", "shop_", "class x", "a" * 31, "../x"]
)
def test_a_name_that_no_package_can_have_is_refused(name, tmp_path):
    with pytest.raises(PluginError, match=r"can't be the name of a plugin\. Write lower-case letters"):
        write(name, "domain", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("bfcl", "environment"),
        ("prompted", "optimizer"),
        ("bfcl_final_state", "verifier"),
        ("local", "model"),
    ],
)
def test_a_name_that_an_installed_plugin_has_is_refused(name, has, tmp_path):
    with pytest.raises(
        PluginError, match=rf"wer-skills .* has the {has} '{name}' already\. Choose another name"
    ):
        write(name, "domain", tmp_path)


def test_a_name_whose_package_is_there_already_is_refused(tmp_path):
    with pytest.raises(PluginError, match=r"there is a package 'wer_sandbox' already"):
        write("sandbox", "model", tmp_path)


def test_an_existing_folder_is_left_alone(tmp_path):
    mine = tmp_path / "wer-plugin-shop" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")

    with pytest.raises(PluginError, match=r"wer-plugin-shop exists already\. .*--into"):
        write("shop", "verifier", tmp_path)

    assert list(mine.parent.iterdir()) == [mine]


def test_the_command_says_what_to_do_next(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(["plugin", "new", "shop", "--kind", "domain"])

    said = capsys.readouterr().out
    assert not ended.value.code
    assert (tmp_path / "wer-plugin-shop" / "pyproject.toml").is_file()
    assert "pip install -e 'wer-plugin-shop[dev]'" in said and "wer plugin check shop" in said


def test_help_says_what_each_kind_is(capsys):
    with pytest.raises(SystemExit):
        main(["plugin", "new", "--help"])

    said = capsys.readouterr().out
    assert all(f"{kind}:" in said for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_formatted_and_linted_however_long_the_name(kind, tmp_path):
    for name in ("ab", "a" * 30):
        folder = write(name, kind, tmp_path)

        run(sys.executable, "-m", "ruff", "check", "--no-cache", cwd=folder)
        run(sys.executable, "-m", "ruff", "format", "--check", "--no-cache", cwd=folder)


@pytest.mark.slow
def test_what_is_written_is_strictly_typed(tmp_path):
    for kind in KINDS:
        folder = write("my_part", kind, tmp_path / kind)

        run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "mypy", cwd=folder)
