"""Remarks an agent with tools of its own that tells no state: a check that looks at it judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.agents import Kind, called, is_own, kind_of
from wer.configuration import RunConfig
from wer.contracts import Environment
from wer.loop.agents import offers_tools
from wer.records import Rollout
from wer.store import Store

REMARKS = "remarks"
"""The purpose of documents in the store that reports repeat as notes."""

_HOW: Mapping[Kind | None, str] = {
    "function": "Return wer.Outcome(messages, state)",
    "command": 'Have it write {"state": ...} as JSON into the file that WER_TURN names as "outcome" (or {outcome})',
    "http": 'Have it answer {"messages": ..., "state": ...}',
}


def stateless_remark(
    config: RunConfig, envs: Mapping[str, Environment], store: Store, say: Callable[[str], None]
) -> Callable[[Rollout], None]:
    """Make what looks at each finished rollout, and remarks an agent's first without a state, once in a run."""
    own = {spec for spec in config.executors if is_own(spec)}
    unseen = set() if not own or offers_tools(config, envs) else own
    unseen = {spec for spec in unseen if store.document(REMARKS, spec) is None}

    def look(rollout: Rollout) -> None:
        spec = rollout.executor or config.executor
        if spec in unseen and rollout.evidence.turns and rollout.evidence.turns[-1].state is None:
            unseen.discard(spec)
            remark = (
                f"your agent {called(spec)} told no state on {rollout.task_id}, so that the check sees null as "
                f"end.state. {_HOW[kind_of(spec)]}: docs/own-agents.md, 'A function with tools of its own'. A check "
                "of end.text alone needs none"
            )
            store.put_document(REMARKS, spec, remark)
            say(f"warning: {remark}")

    return look
