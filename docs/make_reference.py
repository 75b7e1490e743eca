"""Writes ``docs/reference.md`` from the configuration's own records, so that it can't drift."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from wer.configuration import RunConfig, presets
from wer_bfcl.environment import BfclOptions
from wer_grpo.options import GrpoOptions
from wer_toolagent.options import ToolAgentOptions

_PLUGINS = {
    "executor_options": ToolAgentOptions,
    "environment.bfcl": BfclOptions,
    "optimizer.grpo": GrpoOptions,
}
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def reference() -> str:
    """Give the whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Configuration\n"
    yield "Made from the code by `docs/make_reference.py`. Every key can stand in `wer.toml` or behind `--set`;"
    yield f"presets: {', '.join(f'`{name}`' for name in presets())}.\n"
    attrs.resolve_types(RunConfig)
    yield from _table(RunConfig, "")
    for field in attrs.fields(RunConfig):
        if attrs.has(field.type):
            yield f"\n## `[{field.name}]`\n"
            yield from _table(field.type, f"{field.name}.")
    for heading, cls in _PLUGINS.items():
        yield f"\n## `[{heading}]`, of a shipped plugin\n"
        yield from _table(cls, f"{heading}.")


def _table(cls: type, prefix: str) -> Iterator[str]:
    attrs.resolve_types(cls)
    meanings = dict(_ATTRIBUTE.findall(inspect.getdoc(cls) or ""))
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for field in attrs.fields(cls):
        if attrs.has(field.type):
            continue
        default = "{}" if isinstance(field.default, attrs.Factory) else _toml(field.default)
        meaning = " ".join(meanings.get(field.name, "").split())
        yield f"| `{prefix}{field.name}` | `{default}` | {meaning} |"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


if __name__ == "__main__":
    Path(__file__).with_name("reference.md").write_text(reference(), "utf-8")
