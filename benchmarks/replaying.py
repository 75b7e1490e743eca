"""Replays of the 200 BFCL references: what an isolated episode costs that is played without a model."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from children import measured
from figures import Figure, Target, least, most
from peers import Peers


@frozen(kw_only=True)
class Size:
    """How much is replayed.

    Attributes:
        repeats: Times that all references are played, in one process.
        containers: Episodes that get a container each.
    """

    episodes: int
    concurrency: int
    repeats: int
    containers: int


FULL = Size(episodes=200, concurrency=32, repeats=5, containers=16)
SMALL = Size(episodes=4, concurrency=4, repeats=1, containers=1)

_TARGETS = {"docker": 300.0, "process": 150.0}


def measure(size: Size, peers: Peers) -> Iterator[Figure]:
    """Docker with a container an episode beside it, then the process sandbox."""
    for sandbox, target in _TARGETS.items():
        found = measured(
            "wer_replay.py",
            sandbox=sandbox,
            episodes=size.episodes,
            concurrency=size.concurrency,
            repeats=size.repeats,
        )
        if "unavailable" in found:
            yield _absent(sandbox, target, found["unavailable"])
            continue
        beside = {}
        if sandbox == "docker":
            rates = [
                measured("docker_run.py", episodes=size.containers, concurrency=at_once)["rate"]
                for at_once in (1, min(4, size.concurrency))
            ]
            beside = {"docker run an episode, before any call": max(rates)}
        yield most(
            f"replay/BFCL references, {sandbox}",
            found["rates"],
            unit="episodes/s",
            target=Target(sign=">=", value=target),
            beside=beside,
            note=f"{found['calls']:.1f} calls an episode, all judged and passed; {found['tier']}",
        )
        yield least(
            f"replay/CPU of an episode, {sandbox}",
            found["cpu_ms"],
            unit="ms",
            note="driver, workers and episodes together",
        )


def _absent(sandbox: str, target: float, why: str) -> Figure:
    return Figure(
        name=f"replay/BFCL references, {sandbox}",
        value=0.0,
        unit="episodes/s",
        samples=(),
        target=Target(sign=">=", value=target),
        note=f"not measured: {why}",
    )
