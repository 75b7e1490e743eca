"""The store: how fast finished rollouts are safe, and how soon a large run is open again."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from children import measured
from figures import Figure, Target, least, most
from peers import Peers


@frozen(kw_only=True)
class Size:
    """How much is written.

    Attributes:
        rollouts: Of the run that is opened again.
        timed: Of them, those whose writing is timed.
    """

    rollouts: int
    timed: int
    repeats: int


FULL = Size(rollouts=100_000, timed=5000, repeats=3)
SMALL = Size(rollouts=100, timed=100, repeats=1)


def measure(size: Size, peers: Peers) -> Iterator[Figure]:
    """Write a few thousand several times, and once so many as a large run has."""
    runs = [measured("wer_store.py", rollouts=size.timed, timed=size.timed) for _ in range(size.repeats)]
    large = measured("wer_store.py", rollouts=size.rollouts, timed=min(size.timed, size.rollouts))
    yield most(
        "store/rollouts written",
        [size.timed / run["written_s"] for run in [*runs, large]],
        unit="a second",
        target=Target(sign=">=", value=500),
        beside={
            "CPU ms each": 1000 * min(run["written_cpu_s"] for run in runs) / size.timed,
            "ms of one fsync here": 1000 * min(run["fsync_s"] for run in runs),
        },
        note="a transaction each, safe from kill -9; a power cut may take the last ones",
    )
    yield least(
        f"store/a run of {size.rollouts:,} rollouts opened again",
        [large["opened_s"]],
        unit="s",
        target=Target(sign="<", value=1.0),
        beside={"GB on disk": large["bytes"] / 1e9},
        note="and its spending and rollouts counted, as a resumed run does before it begins",
    )
    yield most(
        "store/stored rollouts found by a resumed run",
        [size.timed / large["found_s"]],
        unit="a second",
    )
