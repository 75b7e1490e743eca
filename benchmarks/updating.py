"""One GRPO update against TRL's: the same weights, tokens, advantages and loss, in float32 on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from children import measured
from figures import Figure, Target, least
from peers import Peers


@frozen(kw_only=True)
class Size:
    """What is trained.

    Attributes:
        large: Width and layers of the model with the targets.
        small: Of the one for the curve.
        response: Tokens of an answer, R.
        curve: ``(K, P / R)`` of the further points.
        steps: Updates a process; the first is not counted, since it allocates.
    """

    large: tuple[int, int]
    small: tuple[int, int]
    response: int
    curve: tuple[tuple[int, int], ...]
    steps: int
    repeats: int


FULL = Size(
    large=(512, 8),
    small=(384, 6),
    response=64,
    curve=((4, 1), (4, 2), (4, 4), (4, 16), (2, 8), (8, 8)),
    steps=3,
    repeats=2,
)
SMALL = Size(large=(128, 1), small=(128, 1), response=4, curve=(), steps=2, repeats=1)

_K, _RATIO = 4, 8


@frozen(kw_only=True)
class _Trainer:
    name: str
    script: str
    python: Path | None = field(default=None)

    def update(self, shape: Mapping[str, int]) -> dict[str, Any]:
        return measured(self.script, self.python, **shape) if self.python else measured(self.script, **shape)


def measure(size: Size, peers: Peers) -> Iterator[Figure]:
    """The point with the targets, then the curve."""
    plain = _Trainer(name="plain transformers", script="grpo_plain.py")
    trl = peers.python("trl")
    other = _Trainer(name="TRL", script="grpo_trl.py", python=trl) if trl else plain
    yield from _point(size, other, peers, size.large, k=_K, ratio=_RATIO, repeats=size.repeats, beside=plain)
    for k, ratio in size.curve:
        yield from _point(evolve(size, steps=2), other, peers, size.small, k=k, ratio=ratio, repeats=1)


def _point(
    size: Size,
    other: _Trainer,
    peers: Peers,
    model: tuple[int, int],
    *,
    k: int,
    ratio: int,
    repeats: int,
    beside: _Trainer | None = None,
) -> Iterator[Figure]:
    """Time and memory as shares of the other's, each measured right after it."""
    shape = {
        "width": model[0],
        "layers": model[1],
        "k": k,
        "prompt": ratio * size.response,
        "response": size.response,
        "steps": size.steps,
    }
    wer = _Trainer(name="WER", script="grpo_wer.py")
    pairs = []
    for _ in range(repeats):
        pairs.append((wer.update(shape), other.update(shape)))
        _demand_same(*pairs[-1])
    share = [_least(ours, "wall_s") / _least(theirs, "wall_s") for ours, theirs in pairs]
    cpu = min(_least(ours, "cpu_s") / _least(theirs, "cpu_s") for ours, theirs in pairs)
    memory = [ours["peak_mb"] / theirs["peak_mb"] for ours, theirs in pairs]
    ours, theirs = pairs[0]
    above = (ours["peak_mb"] - ours["ready_mb"]) / (theirs["peak_mb"] - theirs["ready_mb"])
    more: dict[str, float] = {}
    if beside is not None and beside != other:
        third = beside.update(shape)
        _demand_same(ours, third)
        more = {
            f"plain transformers, of {other.name}'s": _least(third, "wall_s") / _least(theirs, "wall_s"),
            "its CPU time": _least(third, "cpu_s") / _least(theirs, "cpu_s"),
        }
    where = f"K = {k}, P = {ratio} R"
    unit = f"of {other.name}'s"
    aimed = beside is not None
    yield least(
        f"grpo/time of an update, {where}",
        share,
        unit=unit,
        target=Target(sign="<=", value=0.5) if aimed else None,
        beside={"CPU time": cpu, f"{other.name}, s": _least(theirs, "wall_s"), **more},
        note=peers.why_missing("trl")
        or f"equal step: the weights moved {ours['moved']:.6g} and {theirs['moved']:.6g}",
    )
    yield least(
        f"grpo/peak memory of an update, {where}",
        memory,
        unit=unit,
        target=Target(sign="<=", value=0.8) if aimed else None,
        beside={"beyond what was there before the step": above, f"{other.name}, MB": theirs["peak_mb"]},
        note="whole processes, their libraries included",
    )


def _least(run: Mapping[str, Any], what: str) -> float:
    return min(run[what][1:])


def _demand_same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Refuse to compare steps that differ.

    Raises:
        RuntimeError: The losses or the first step's weights are not equal.
    """
    losses = zip(ours["losses"], theirs["losses"], strict=True)
    near = all(abs(a - b) < 1e-4 for a, b in losses)
    if not near or abs(ours["moved"] - theirs["moved"]) > 1e-3 * theirs["moved"]:
        raise RuntimeError(f"the updates are not the same: {ours} and {theirs}")
