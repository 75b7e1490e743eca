"""The pages say what the code does."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from cyclopts import App, CycloptsError, UnknownCommandError, UnknownOptionError

import wer
from wer.cli import COMMANDS
from wer.configuration import resolve
from wer.measures import MEASURES

_ROOT = Path(__file__).parent.parent


def _made(name="make_reference"):
    spec = importlib.util.spec_from_file_location(name, _ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_records_say():
    reference = _made().reference()

    assert (_ROOT / "docs" / "reference.md").read_text("utf-8") == reference
    assert "| |" not in reference


def test_the_page_of_training_figures_names_those_that_are_measured():
    metrics = _made().metrics()

    assert (_ROOT / "docs" / "metrics.md").read_text("utf-8") == metrics
    assert set(re.findall(r"^\| `(\w+)`", metrics, re.MULTILINE)) == set(MEASURES)


def test_every_command_is_in_the_readme_and_every_command_there_exists():
    readme = (_ROOT / "README.md").read_text("utf-8")

    named = set(re.findall(r"`?wer (\w+)", readme)) - {"is"}

    assert set(COMMANDS) <= named
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("file", sorted((_ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_every_example_configuration_is_accepted(file):
    config = resolve(None, file, (), {})

    assert config.env


def test_the_readme_quotes_the_example_of_python_as_it_is():
    script = (_ROOT / "examples" / "own-tools" / "refine.py").read_text("utf-8")

    assert f"```python\n{script}```\n" in (_ROOT / "README.md").read_text("utf-8")


def parse(line: str) -> None:
    """Parse a command line as ``wer`` would, and run nothing of it.

    Raises:
        CycloptsError: It is refused.
    """
    written = shlex.split(line, comments=True)
    words = [
        word
        for before, word in pairwise(written)
        if word not in ("…", "...") or (before.startswith("--") and "=" not in before)
    ]
    module, _, attribute = COMMANDS[words[0]][0].partition(":")
    app = App(name="wer")
    app.command(getattr(import_module(module), attribute), name=words[0])
    app.parse_args(words, exit_on_error=False, print_error=False)


def lines_of(text: str) -> list[str]:
    """The command lines in the blocks of a page, whole where they are broken by a backslash."""
    commands = rf"^ *(?:run: |# )?(wer (?:{'|'.join(COMMANDS)})\b.*)$"
    return re.findall(commands, text.replace("\\\n", " "), re.MULTILINE)


_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PAGES = [
    _ROOT / "README.md",
    *sorted((_ROOT / "docs").rglob("*.md")),
    *sorted((_ROOT / "examples").rglob("*.yml")),
    *sorted((_ROOT / "examples").rglob("*.toml")),
    _ROOT / "core" / "wer" / "scaffolds" / "start" / "wer.toml.tmpl",
]
_COMMAND_LINES = [
    pytest.param(line, id=f"{page.name}: {line}")
    for page in _PAGES
    for line in lines_of(page.read_text("utf-8"))
]


@pytest.mark.parametrize("line", _COMMAND_LINES)
def test_every_command_line_in_a_block_is_one_that_wer_takes(line):
    parse(line)


def test_no_page_names_an_option_that_does_not_exist():
    named = {
        line
        for page in _PAGES
        for line in re.findall(r"`(wer \w[^`]*)`", _BLOCK.sub("", page.read_text("utf-8")).replace("\n", " "))
    }
    wrong = []
    for line in sorted(named):
        try:
            parse(line)
        except (UnknownOptionError, UnknownCommandError, KeyError) as error:
            wrong.append(f"{line}: {error}")
        except (CycloptsError, IndexError, ValueError):
            pass  # a part of a line, or one with words to be filled in

    assert named and not wrong


@pytest.mark.parametrize("file", sorted((_ROOT / "examples").rglob("*.yml")), ids=lambda path: path.name)
def test_the_steps_of_every_example_workflow_can_be_read(file):
    workflow = yaml.safe_load(file.read_text("utf-8"))

    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(step.keys() & {"uses", "run"} for step in steps)
    assert any(lines_of(step.get("run", "")) for step in steps)


def test_the_page_of_python_has_every_public_name():
    page = (_ROOT / "docs" / "api.md").read_text("utf-8")

    assert {name for name in wer.__all__ if not re.search(rf"\bwer\.{name}\b", page)} == set()
    assert set(re.findall(r"^::: wer\.(\w+)$", page, re.MULTILINE)) <= set(wer.__all__)


@pytest.mark.parametrize("page", sorted((_ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_quotation_on_every_page_is_what_its_source_says(page):
    text = page.read_text("utf-8")

    assert _made("quote").requoted(text) == text, "run docs/quote.py"


@pytest.mark.parametrize("name", ["python.md", "own-agents.md", "mcp.md", "gate.md"])
def test_all_python_of_the_guides_is_quoted_from_what_the_suite_runs(name):
    page = (_ROOT / "docs" / name).read_text("utf-8")

    assert "```python" not in re.sub(r"^<!-- from \S+(?: \S+)? -->\n```python$", "", page, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]

    done = subprocess.run(
        words, cwd=_ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )

    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = [page.read_text("utf-8") for page in (tmp_path / "site").rglob("*.html")]
    assert (
        "Revise a skill from what happens on the training tasks"
        in (tmp_path / "site/api/index.html").read_text()
    )
    assert not [
        found
        for page in pages
        for found in re.findall(r"<(?:script|img|link rel=.stylesheet)[^>]+//[^>]+>", page)
    ]
