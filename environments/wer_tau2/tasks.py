"""tau2's 278 base tasks as WER's, in three domains and one of two splits."""

from __future__ import annotations

from collections.abc import Sequence

from wer.errors import ConfigError, TaskError
from wer.records import JsonObject, Split, Task, content_hash
from wer_tau2.benchmark import DOMAINS, PACKAGE, Benchmark
from wer_tau2.options import Tau2Options

TRAIN_SIZE = {"airline": 10, "retail": 23, "telecom": 23}
"""Of the split ``paper``: its scores are multiples of 1/40 and 1/91."""


def tasks(benchmark: Benchmark, domain: str, split: Split, options: Tau2Options) -> Sequence[Task]:
    """Give one split of a domain, in the package's order.

    Raises:
        ConfigError: There is no such domain.
    """
    if domain not in DOMAINS:
        raise ConfigError(f"tau2 has no domain {domain!r}. Choose among {', '.join(DOMAINS)}.")
    names = list(benchmark.entries[domain])
    train = _train(benchmark, domain, names, options)
    return [
        _task(benchmark, domain, name, split, options)
        for name in names
        if (name in train) == (split == "train")
    ]


def entry(benchmark: Benchmark, task: Task) -> JsonObject:
    """The package's own record of a task, its secrets included.

    Raises:
        TaskError: The task is not one of the benchmark's.
    """
    found = benchmark.entries.get(task.domain, {}).get(str(task.setup.get("id")))
    if found is None:
        raise TaskError(f"tau2 has no task {task.id!r}. Its ids look like tau2/airline/0.")
    return found


def _train(benchmark: Benchmark, domain: str, names: Sequence[str], options: Tau2Options) -> frozenset[str]:
    if options.split == "official":
        return frozenset(benchmark.splits[domain]["train"])
    # By hash, so that the split is the same in every version of Python.
    shuffled = sorted(names, key=lambda name: content_hash(["tau2 split", options.seed, domain, name]))
    return frozenset(shuffled[: TRAIN_SIZE[domain]])


def _task(benchmark: Benchmark, domain: str, name: str, split: Split, options: Tau2Options) -> Task:
    texts = benchmark.texts[domain]
    return Task(
        id=f"tau2/{domain}/{name}",
        env="tau2",
        domain=domain,
        split=split,
        turns=(),
        tools=texts.tools,
        context=texts.prompt,
        setup={
            "package": PACKAGE,
            "id": name,
            "max_steps": options.max_steps,
            "max_errors": options.max_errors,
            "user_temperature": options.user_temperature,
            "user_max_tokens": options.user_max_tokens,
        },
    )
