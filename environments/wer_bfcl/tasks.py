"""BFCL's 200 multi-turn base tasks as WER's, in four domains and two balanced splits."""

from __future__ import annotations

from collections.abc import Sequence

from wer.errors import ConfigError
from wer.records import Split, Task, content_hash
from wer_bfcl.benchmark import Benchmark
from wer_bfcl.tools import tool_spec

OWN_CLASS = {
    "file_system": "GorillaFileSystem",
    "vehicle_control": "VehicleControlAPI",
    "trading_bot": "TradingBot",
    "travel_booking": "TravelAPI",
}
DOMAINS = tuple(OWN_CLASS)
"""In the benchmark's order, fifty ids each."""

TASKS_PER_DOMAIN = 50
TRAIN_SIZE = {"file_system": 12, "vehicle_control": 13, "trading_bot": 12, "travel_booking": 13}
"""Makes 50 train and 150 test tasks: the paper's scores are multiples of 1/38 and 1/37."""

PREFIX_MARK = "prefix task: not the benchmark"
NEEDED_MARK = "only the needed classes' tools are on offer: not the benchmark"
UNDERIVABLE_MARK = "the reference can't be derived from the conversation"
_UNDERIVABLE = frozenset({4, 8, 18, 75, 187, 188})


def tasks(
    benchmark: Benchmark,
    domain: str,
    split: Split,
    *,
    seed: int,
    max_turns: int | None,
    only_needed: bool = False,
) -> Sequence[Task]:
    """Give one split of a domain, in the benchmark's order.

    Args:
        seed: Decides the split, and nothing else.
        max_turns: Keep only so many turns; a task that has more becomes a prefix task.
        only_needed: Offer the tools of the domain's own class and of those that the
            reference calls in the turns that are kept, not of all involved classes.

    Raises:
        ConfigError: There is no such domain.
    """
    if domain not in DOMAINS:
        raise ConfigError(f"bfcl has no domain {domain!r}. Choose among {', '.join(DOMAINS)}.")
    first = DOMAINS.index(domain) * TASKS_PER_DOMAIN
    numbers = range(first, first + TASKS_PER_DOMAIN)
    train = _train_numbers(domain, numbers, seed)
    chosen = [number for number in numbers if (number in train) == (split == "train")]
    return [_task(benchmark, number, domain, split, max_turns, only_needed) for number in chosen]


def entry_id(task: Task) -> str:
    """The benchmark's own id of a task, whole or prefix."""
    return task.id.removeprefix("bfcl/").partition("@")[0]


def _train_numbers(domain: str, numbers: Sequence[int], seed: int) -> frozenset[int]:
    """Draw by hash, so that the split is the same in every version of Python."""
    shuffled = sorted(numbers, key=lambda number: content_hash(["bfcl split", seed, number]))
    return frozenset(shuffled[: TRAIN_SIZE[domain]])


def _task(
    benchmark: Benchmark, number: int, domain: str, split: Split, max_turns: int | None, only_needed: bool
) -> Task:
    entry = benchmark.entries[f"multi_turn_base_{number}"]
    turns = tuple(turn[0]["content"] for turn in entry["question"])
    is_prefix = max_turns is not None and len(turns) > max_turns
    marks = [PREFIX_MARK] * is_prefix + [UNDERIVABLE_MARK] * (number in _UNDERIVABLE)
    classes = entry["involved_classes"]
    if only_needed:
        needed = _needed(benchmark, number, domain, max_turns)
        marks += [NEEDED_MARK] * (set(classes) != needed)
        classes = [name for name in classes if name in needed]
    docs = [doc for name in classes for doc in benchmark.docs[name]]
    return Task(
        id=f"bfcl/{entry['id']}" + (f"@{max_turns}" if is_prefix else ""),
        env="bfcl",
        domain=domain,
        split=split,
        turns=turns[:max_turns],
        tools=tuple(tool_spec(doc) for doc in docs),
        setup={
            "initial_config": entry["initial_config"],
            "involved_classes": entry["involved_classes"],
        },
        marks=tuple(marks),
    )


def _needed(benchmark: Benchmark, number: int, domain: str, max_turns: int | None) -> set[str]:
    """The domain's own class, and the classes whose tools the reference calls in the kept turns."""
    turns = benchmark.answers[f"multi_turn_base_{number}"][:max_turns]
    called = {call.partition("(")[0].strip() for turn in turns for call in turn}
    involved = benchmark.entries[f"multi_turn_base_{number}"]["involved_classes"]
    offering = {name for name in involved if called & {doc["name"] for doc in benchmark.docs[name]}}
    return offering | {OWN_CLASS[domain]}
