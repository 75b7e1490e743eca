"""The pages say what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from wer.cli import COMMANDS
from wer.configuration import resolve
from wer.measures import MEASURES

_ROOT = Path(__file__).parent.parent


def _made():
    spec = importlib.util.spec_from_file_location("make_reference", _ROOT / "docs" / "make_reference.py")
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
