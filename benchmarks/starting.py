"""How long a user waits for the first sign of life."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from figures import Figure, Target, least
from peers import Peers


@frozen(kw_only=True)
class Size:
    """How often each is started."""

    repeats: int


FULL = Size(repeats=15)
SMALL = Size(repeats=1)

_BARE = [sys.executable, "-c", "pass"]
_IMPORT = [sys.executable, "-c", "import wer"]
_HELP = [str(Path(sys.executable).with_name("wer")), "--help"]


def measure(size: Size, peers: Peers) -> Iterator[Figure]:
    """Start each in turn; what a bare Python takes is part of both, and shown beside them."""
    found: dict[str, list[float]] = {name: [] for name in ("bare", "import", "help", "openai", "inspect_ai")}
    cpu = {name: [] for name in ("bare", "import", "help")}
    others = {name: python for name in ("openai", "inspect_ai") if (python := peers.python(name)) is not None}
    for number in range(size.repeats):
        for name, command in {"bare": _BARE, "import": _IMPORT, "help": _HELP}.items():
            before = _children_cpu_s()
            found[name].append(_wall_s(command))
            cpu[name].append(_children_cpu_s() - before)
        for name, python in others.items() if number < 3 else ():
            found[name].append(_wall_s([str(python), "-c", f"import {name}"]))
    bare = min(found["bare"])
    imported = {f"import {name}": min(found[name]) for name in others}
    yield least(
        "start/wer --help",
        found["help"],
        unit="s",
        target=Target(sign="<", value=0.3),
        beside={"its CPU": min(cpu["help"]), "python -c pass": bare},
    )
    yield least(
        "start/import wer",
        [max(0.0, wall - bare) for wall in found["import"]],
        unit="s beyond a bare Python",
        target=Target(sign="<", value=0.1),
        beside={"its CPU": min(cpu["import"]) - min(cpu["bare"]), "python -c pass": bare, **imported},
        note=peers.why_missing("openai", "inspect_ai"),
    )


def _wall_s(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - began


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
