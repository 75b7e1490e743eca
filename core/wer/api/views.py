"""How results look: text in a console, colours on a terminal, the same as HTML in a notebook."""

from __future__ import annotations

import io
import shutil

from rich.console import Console, Group, RenderableType

from wer.skills.cleaning import plain

_WIDTH = 100


class View:
    """Something to look at: ``print`` it, or let a notebook show it.

    Args:
        parts: What rich draws, in order.
    """

    def __init__(self, *parts: RenderableType) -> None:
        self._parts = parts

    def __rich__(self) -> RenderableType:
        return Group(*self._parts)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)


def as_text(view: RenderableType) -> str:
    """Draw without colours, as wide as the terminal; nothing in it commands a terminal."""
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    console = Console(
        file=io.StringIO(), width=width, color_system=None, force_jupyter=False, highlight=False
    )
    with console.capture() as captured:
        console.print(view)
    return "\n".join(line.rstrip() for line in plain(captured.get()).splitlines())


def as_html(view: RenderableType) -> str:
    """Draw as HTML; what models wrote is escaped."""
    console = Console(
        file=io.StringIO(),
        width=_WIDTH,
        record=True,
        force_jupyter=False,
        highlight=False,
        color_system="truecolor",
    )
    console.print(view)
    frame = '<pre style="white-space:pre;line-height:1.2;font-family:monospace">{code}</pre>'
    return plain(console.export_html(inline_styles=True, code_format=frame))
