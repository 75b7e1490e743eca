"""Judges stored rollouts again: a verdict is a function of stored data, so it must come out the same."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from wer.contracts import Verifier
from wer.plugins import Plugins
from wer.records import Rollout, Verdict
from wer.store import Store


@frozen(kw_only=True)
class Rejudged:
    """A stored rollout with its verdict of now.

    Attributes:
        verifier: Name of the verifier that judged again.
    """

    rollout: Rollout
    verifier: str
    now: Verdict

    @property
    def agrees(self) -> bool:
        """Whether the stored data still give the stored verdict, score and diagnostics included."""
        return self.now == self.rollout.verdict


def rejudge(store: Store, plugins: Plugins, *, verifier: str = "") -> Iterator[Rejudged]:
    """Judge every stored rollout again, for nothing: no sandbox, no model.

    Args:
        verifier: Another verifier's name, to see what it would have said; empty is the
            one that judged.
    """
    made: dict[str, Verifier] = {}
    for rollout, task_key, original in store.rollouts():
        name = verifier or original
        judge = made.setdefault(name, plugins.verifiers.make(name))
        expect = store.expect(task_key)
        now = judge.judge(
            store.task(task_key), rollout.trajectory, rollout.evidence, expect[0] if expect else None
        )
        yield Rejudged(rollout=rollout, verifier=name, now=now)
