"""``docs/writing-plugins.md`` says what the code does, and covers all that a plugin can do."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from wer import contracts, hookspecs

_ROOT = Path(__file__).parent.parent
_PAGE = (_ROOT / "docs" / "writing-plugins.md").read_text("utf-8")
_QUOTED = re.findall(r"^<!-- from (\S+)(?: (\S+))? -->$", _PAGE, re.MULTILINE)
_HOOKS = [name for name in vars(hookspecs) if name.startswith("wer_")]
_CONTRACTS = [found for name in contracts.__all__ if inspect.isclass(found := getattr(contracts, name))]


def _requoted():
    spec = importlib.util.spec_from_file_location("quote", _ROOT / "docs" / "quote.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.requoted(_PAGE)


def test_every_quotation_is_what_its_source_says():
    assert _requoted() == _PAGE, "run docs/quote.py"


def test_all_python_on_the_page_is_quoted():
    assert len(re.findall(r"^```(?:python|toml|json)$", _PAGE, re.MULTILINE)) == len(_QUOTED)


@pytest.mark.parametrize("hook", _HOOKS)
def test_every_hook_has_a_heading_its_specification_and_a_shipped_user(hook):
    _, section = _PAGE.split(f"\n### `{hook}`\n")
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]

    quoted = re.findall(rf"^<!-- from (\S+) {hook} -->$", section, re.MULTILINE)

    assert quoted[0] == "core/wer/hookspecs.py"
    assert len(quoted) == 2 and quoted[1].endswith("/__init__.py")


@pytest.mark.parametrize("contract", _CONTRACTS, ids=lambda contract: contract.__name__)
def test_every_contract_is_quoted_with_its_failure_policy(contract):
    assert (f"core/{contract.__module__.replace('.', '/')}.py", contract.__name__) in _QUOTED


def test_every_link_of_the_page_leads_somewhere():
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", _PAGE, re.MULTILINE)
    }

    for target in re.findall(r"\]\(([^)]+)\)", _PAGE):
        path, _, anchor = target.partition("#")
        assert (_ROOT / "docs" / path).exists() if path else anchor in headings, target


def test_the_readme_links_the_page():
    assert "(docs/writing-plugins.md)" in (_ROOT / "README.md").read_text("utf-8")
