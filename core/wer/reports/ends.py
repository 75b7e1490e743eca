"""How a run's episodes ended, so that a simulated user's failures can be told from the agent's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wer.skills.cleaning import plain
from wer.store import Store


def ends_table(store: Store) -> Iterator[str]:
    """A line of markdown a way to end, the most frequent first: who, why, rollouts and passes."""
    ended: Counter[tuple[str, str, str]] = Counter()
    passed: Counter[tuple[str, str, str]] = Counter()
    for rollout, _, _ in store.rollouts():
        end = rollout.evidence.end
        way: tuple[str, str, str] = (rollout.task_id.partition("/")[0], end.by, _cell(end.why))
        ended[way] += 1
        passed[way] += rollout.verdict.passed
    if not ended:
        return
    yield "| environment | ended by | why | rollouts | passed |"
    yield "|---|---|---|---|---|"
    for way, count in sorted(ended.items(), key=lambda item: (item[0][0], -item[1], item[0])):
        yield f"| {' | '.join(way)} | {count} | {passed[way]} |"


def _cell(why: str) -> str:
    """A reason, which an environment may have from a model, as one short cell of a table."""
    return " ".join(plain(why).replace("|", "/").split())[:60]
