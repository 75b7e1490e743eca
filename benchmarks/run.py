"""All benchmarks of WER: ``python benchmarks/run.py [NAME ...] [-o figures.json]``.

Each prints its figures as they come and writes all of them as JSON, with their targets, the machine,
and what peers have in the same run. ``--docs`` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from figures import Figure, table, write
from machine import machine
from peers import Peers

NAMES = {
    "start": "starting",
    "store": "storing",
    "scheduler": "scheduling",
    "replay": "replaying",
    "grpo": "updating",
}
"""A benchmark's module."""

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_BEGIN, _END = "<!-- figures -->\n", "<!-- end of figures -->\n"

Measure = Callable[[Any, Peers], Iterator[Figure]]


def main(words: list[str] | None = None) -> int:
    """Measure what was named; the exit status is 1 when a target was missed."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path("figures.json"), help="where the JSON goes")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--no-peers", action="store_true", help="leave out what has to be installed")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    chosen = parser.parse_args(words)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}; there are {', '.join(NAMES)}")
    began = time.perf_counter()
    peers = Peers(wanted=not chosen.no_peers, say=_say)
    about: dict[str, Any] = {"machine": machine(), "size": "small" if chosen.small else "full"}
    figures: list[Figure] = []
    for name in chosen.names or NAMES:
        started = time.perf_counter()
        _say(f"{name} ...")
        module = import_module(NAMES[name])
        measure: Measure = module.measure
        for figure in measure(module.SMALL if chosen.small else module.FULL, peers):
            figures.append(figure)
            _say(str(figure))
        _say(f"  ({time.perf_counter() - started:.0f} s)")
    about["wall_s"] = round(time.perf_counter() - began, 1)
    write(chosen.output, figures, about)
    _say(f"figures: {chosen.output} ({about['wall_s']:.0f} s)")
    if chosen.docs:
        _document(figures, about)
    return int(any(figure.met is False for figure in figures) and not chosen.small)


def _document(figures: list[Figure], about: Mapping[str, Any]) -> None:
    on = about["machine"]
    where = (
        f"{on['cores']} cores of {on['processor']}, {on['memory_gb']:g} GB, {on['system']}, "
        f"Python {on['python']}; load {on['load_1_minute']:g} when it began, {about['wall_s']:.0f} s in all."
    )
    text = DOCS.read_text()
    made = f"{_BEGIN}{where}\n\n{table(figures)}\n{_END}"
    DOCS.write_text(re.sub(f"{_BEGIN}.*?{_END}", lambda _: made, text, flags=re.DOTALL))
    _say(f"table: {DOCS}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
