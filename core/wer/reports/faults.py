"""What failed beneath a run and was tried again: counted, so that nobody mistakes it for a skill's failures."""

from __future__ import annotations

from collections import Counter

from wer.store import Store


def faults_line(store: Store) -> str:
    """Say how often each kind of failure was met, the most frequent first; empty when none was."""
    kinds: Counter[str] = Counter()
    for kind, _, count in store.faults():
        kinds[kind] += count
    return ", ".join(f"{count} \N{MULTIPLICATION SIGN} {kind}" for kind, count in kinds.most_common())


def faults_table(store: Store) -> list[str]:
    """Lines of markdown, a row a kind and place: ``executor`` and other roles, or ``rollouts``."""
    rows = [f"| {kind} | {place} | {count} |" for kind, place, count in store.faults()]
    return ["| what | where | times |", "|---|---|---|", *rows] if rows else ["None."]
