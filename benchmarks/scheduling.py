"""What the loop adds to a model call: CPU time, lost throughput, memory that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen
from children import measured, mock_server
from figures import Figure, Target, least, most
from peers import Peers

_CALLS_A_ROLLOUT = 8


@frozen(kw_only=True)
class Size:
    """How much is measured.

    Attributes:
        waves: Rollouts that each of the concurrent places has, one after the other.
        many: Of the second concurrency.
        rollouts: For memory.
    """

    repeats: int
    waves: int
    few: int
    many: int
    slow_s: float
    openai_calls: int
    inspect_calls: int
    rollouts: int


FULL = Size(
    repeats=3, waves=8, few=64, many=1000, slow_s=1.0, openai_calls=1000, inspect_calls=400, rollouts=100_000
)
SMALL = Size(repeats=1, waves=1, few=4, many=8, slow_s=0.1, openai_calls=8, inspect_calls=8, rollouts=200)


def measure(size: Size, peers: Peers) -> Iterator[Figure]:
    """CPU and throughput against a server of 50 ms and a slow one, then memory."""
    yield from _calls(size, peers, concurrency=size.few, delay_s=0.05, waves=size.waves, cpu=True)
    yield from _calls(size, peers, concurrency=size.many, delay_s=size.slow_s, waves=1, cpu=False)
    yield _memory(size)


def _calls(
    size: Size, peers: Peers, *, concurrency: int, delay_s: float, waves: int, cpu: bool
) -> Iterator[Figure]:
    calls = concurrency * waves * _CALLS_A_ROLLOUT
    ours = {"concurrency": concurrency, "calls": _CALLS_A_ROLLOUT, "rollouts": concurrency * waves}
    plain = {"concurrency": concurrency, "calls": calls}
    with mock_server(delay_s) as url:
        contenders: dict[str, Callable[[], dict[str, Any]]] = {
            "WER": lambda: measured("wer_calls.py", url=url, **ours),
            "aiohttp alone": lambda: measured("aiohttp_calls.py", url=url, **plain),
        }
        openai, inspect = peers.python("openai"), peers.python("inspect_ai")
        if openai is not None:
            few = {**plain, "calls": min(calls, size.openai_calls)}
            contenders["openai client"] = lambda: measured("openai_calls.py", openai, url=url, **few)
        found = {name: [] for name in contenders}
        for turn in range(size.repeats if cpu else max(1, size.repeats - 1)):
            for name, measure_it in contenders.items():
                if name != "openai client" or turn == 0:  # far from the others, and slow to say so
                    found[name].append(measure_it())
        if inspect is not None and cpu:
            fewer = {**plain, "calls": size.inspect_calls}
            found["inspect_ai, a sample"] = [measured("inspect_calls.py", inspect, url=url, **fewer)]
        single = {**ours, "calls": 1, "rollouts": calls // 2}
        alone = [measured("wer_calls.py", url=url, **single) for _ in range(size.repeats if cpu else 0)]
    costs = {name: [1000 * run["cpu_s"] / run["calls"] for run in runs] for name, runs in found.items()}
    bound = concurrency / delay_s
    shares = {name: [run["calls"] / run["wall_s"] / bound for run in runs] for name, runs in found.items()}
    missing = peers.why_missing("openai", "inspect_ai")
    if cpu:
        yield least(
            f"scheduler/CPU a model call, concurrency {concurrency}",
            costs.pop("WER"),
            unit="ms",
            target=Target(sign="<=", value=0.6),
            beside={name: min(values) for name, values in costs.items()},
            note=f"{_CALLS_A_ROLLOUT} calls a rollout. {missing}".strip(),
        )
        yield least(
            "scheduler/CPU a rollout of one model call",
            [1000 * run["cpu_s"] / run["calls"] for run in alone],
            unit="ms",
            note="a world, an agent, a verdict and a stored rollout for each call",
        )
    yield most(
        f"scheduler/share of the latency bound, concurrency {concurrency}, {1000 * delay_s:g} ms server",
        shares.pop("WER"),
        unit="of the bound",
        target=Target(sign=">=", value=0.9),
        beside={name: max(values) for name, values in shares.items() if "inspect" not in name},
        note=missing,
    )


def _memory(size: Size) -> Figure:
    found = measured("wer_memory.py", rollouts=size.rollouts, batch=min(1000, size.rollouts // 4))
    return least(
        f"scheduler/memory after {size.rollouts:,} rollouts over that after a tenth",
        [found["after_mb"] / found["tenth_mb"]],
        unit="times",
        target=Target(sign="<=", value=1.1),
        note=f"{found['tenth_mb']:.0f} MB, then {found['after_mb']:.0f} MB; "
        f"{1000 * found['cpu_s'] / size.rollouts:.2f} ms CPU a rollout without a model",
    )
