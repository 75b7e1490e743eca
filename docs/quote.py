"""Puts pieces of the sources into the pages, so that they can't drift from them.

A line ``<!-- from FILE -->`` or ``<!-- from FILE NAME -->`` stands above a fenced block. The block is
the whole file, the definition of NAME (``check``, ``HelpDesk.unlock_account``), or, of a file of
tasks, the line whose id is NAME.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"(^<!-- from (\S+)(?: (\S+))? -->\n```\w*\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def requoted(page: str) -> str:
    """Give the page with every quotation as its source has it now.

    Raises:
        ValueError: A source has no such name.
    """
    return _BLOCK.sub(lambda found: found[1] + quotation(ROOT / found[2], found[3] or "") + found[5], page)


def quotation(file: Path, name: str) -> str:
    """Give a file, or the definition of a name in it, decorators included."""
    text = file.read_text("utf-8")
    if not name:
        return text
    if file.suffix == ".jsonl":
        return next(line + "\n" for line in text.splitlines() if json.loads(line)["id"] == name)
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = _inside(node, part, file)
    first = min((line.lineno for line in getattr(node, "decorator_list", [])), default=node.lineno)  # type: ignore[attr-defined]
    lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]  # type: ignore[attr-defined]
    return textwrap.dedent("".join(lines))


def _inside(node: ast.AST, name: str, file: Path) -> ast.AST:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and child.name == name:
            return child
        targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return child
    raise ValueError(f"{file.relative_to(ROOT)} defines no {name!r}")


def pages() -> list[Path]:
    """Name the pages."""
    return sorted(Path(__file__).parent.rglob("*.md"))


def main() -> None:
    """Quote anew on every page."""
    for page in pages():
        page.write_text(requoted(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
