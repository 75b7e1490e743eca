"""Helper scripts become tools by their syntax tree alone."""

import pytest

from wer.errors import SkillError
from wer.records import Skill
from wer.scripts import check_tests, read_script, scripts_of

ADD = '''
"""Arithmetic."""
from typing import Literal, Optional

def add(numbers: list[int], unit: Literal["km", "mi"] = "km", note: Optional[str] = None) -> str:
    """Add numbers up.

    Args:
        numbers: What to add.

    Returns:
        The sum with its unit.
    """
    return f"{_sum(numbers)} {unit}"

def _sum(numbers):
    return sum(numbers)
'''


def test_a_script_is_a_tool_with_the_schema_of_its_annotations():
    script = read_script("scripts/add_up.py", ADD)

    assert script.function == "add"
    assert script.tool.name == "script_add_up"
    assert script.tool.description == "Add numbers up.\n\nReturns: The sum with its unit."
    assert script.tool.parameters == {
        "type": "object",
        "properties": {
            "numbers": {"type": "array", "items": {"type": "integer"}, "description": "What to add."},
            "unit": {"type": "string", "enum": ["km", "mi"], "default": "km"},
            "note": {"type": ["string", "null"]},
        },
        "required": ["numbers"],
        "additionalProperties": False,
    }


def test_main_is_the_tool_whatever_else_is_public():
    source = 'def main(a: int) -> int:\n    "Do."\n    return a\ndef other(): ...'

    assert read_script("scripts/go.py", source).function == "main"


def test_nothing_of_a_script_runs_when_it_is_read(tmp_path):
    trace = tmp_path / "trace"
    source = f'open({str(trace)!r}, "w")\ndef main() -> int:\n    "Do."\n    return 1'

    read_script("scripts/go.py", source)

    assert not trace.exists()


@pytest.mark.parametrize(
    ("path", "source", "problem"),
    [
        ("scripts/go.sh", "echo", "no helper script"),
        ("scripts/test_go.py", "assert 1", "no helper script"),
        ("scripts/a/go.py", "", "no helper script"),
        ("scripts/go.py", "def f(:", "is no Python"),
        ("scripts/go.py", "(" * 5000, "is no Python"),
        ("scripts/go.py", "x = 1", r"found: none"),
        ("scripts/go.py", "def a(): ...\ndef b(): ...", r"found: a, b"),
        ("scripts/go.py", 'async def a() -> int:\n    "x"', "not async"),
        ("scripts/go.py", "def a() -> int: ...", "no docstring"),
        ("scripts/go.py", 'def a():\n    "x"', "what it returns"),
        ("scripts/go.py", 'def a(b) -> int:\n    "x"', r"a\(b\) has no annotation"),
        ("scripts/go.py", 'def a(b: bytes) -> int:\n    "x"', "bytes has no JSON schema"),
        ("scripts/go.py", 'def a(b: dict[int, str]) -> int:\n    "x"', "which is no JSON"),
        ("scripts/go.py", 'def a(*b: int) -> int:\n    "x"', "not named"),
        ("scripts/go.py", 'def a(b: float = 1e999) -> int:\n    "x"', "no place in JSON"),
        ("scripts/go.py", f'def a(b: int = 0x{"f" * 5000}) -> int:\n    "x"', "no place in JSON"),
        ("scripts/go.py", 'def a(b: Literal[b"c"]) -> int:\n    "x"', "no place in JSON"),
        ("scripts/go.py", 'def a() -> int:\n    "\\ud800"', "no place in JSON"),
        ("scripts/go.py", 'def a(b: Optional[()]) -> int:\n    "x"', "no JSON schema"),
        ("scripts/go.py", f'def a(b: {"int | " * 1500}int) -> int:\n    "x"', r"a\(b\): maximum recursion"),
        ("scripts/go.py", "#" * 30_000, "at most 20000"),
    ],
)
def test_what_is_no_tool_is_refused_with_the_reason(path, source, problem):
    with pytest.raises(SkillError, match=problem):
        read_script(path, source)


def test_tests_are_no_tools():
    skill = Skill(name="s", scripts={"scripts/add_up.py": ADD, "scripts/test_add_up.py": "assert add([1])"})

    assert [script.name for script in scripts_of(skill)] == ["add_up"]


def test_tests_that_assert_nothing_are_refused():
    check_tests("scripts/test_a.py", "assert add([1]) == '1 km'")

    with pytest.raises(SkillError, match="asserts nothing"):
        check_tests("scripts/test_a.py", "def test():\n    assert add([1])")
