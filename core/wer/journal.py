"""A run's log for programs: one JSON object a line, in ``logs/run.jsonl`` of its folder.

What was said and when each stage began and ended, over all starts of the run. Rollouts, spending
and figures are in the store.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from wer.records import Json

Note = Callable[[str, Mapping[str, Json]], None]


@contextmanager
def journal(folder: Path) -> Iterator[Note]:
    """Note that a process opens the run, and how that ends; give what notes the rest.

    Args:
        folder: The run's.
    """
    path = folder / "logs" / "run.jsonl"

    def note(event: str, about: Mapping[str, Json]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **about}, ensure_ascii=True, default=str)
        # a disk without room ends the run where a result is stored, with the remedy
        with contextlib.suppress(OSError), path.open("a") as file:
            file.write(f"{line}\n")

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    note("opened", {"run": folder.name, "pid": os.getpid()})
    try:
        yield note
    except BaseException as error:
        note("ended early", {"error": type(error).__name__})
        raise
    note("ended", {})
