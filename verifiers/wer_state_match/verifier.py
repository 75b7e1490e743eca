"""A verdict for any environment whose state is JSON: the last state must equal the expected one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from wer.differences import MAX_LINES, differences, members
from wer.errors import VerifierError
from wer.records import Evidence, Json, Task, Trajectory, Verdict


class StateMatch:
    """Passes when the state after the last turn equals ``S`` of the expectation ``{"state": S}``.

    Objects compare by key whatever their order, lists by position, numbers as numbers
    (1 and 1.0 are equal), and true is not 1.
    """

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Compare the last state; an episode that ended before its first turn fails.

        Raises:
            VerifierError: ``expect`` is of another form, so it is made for another verifier.
        """
        if not isinstance(expect, Mapping) or set(expect) != {"state"}:
            raise VerifierError(
                f"{task.id} has no expected state: state_match compares with {{'state': ...}} and nothing else. "
                f"Leave --verifier out, so that environment {task.env!r} chooses the one that fits; or let "
                "its `expect` return that."
            )
        if not evidence.turns:
            return Verdict(score=0.0, passed=False, diagnostics=("the episode ended before its first turn",))
        found = differences(evidence.turns[-1].state, expect["state"], "state", equal=_equal)
        lines = tuple(itertools.islice(found, MAX_LINES))
        return Verdict(score=float(not lines), passed=not lines, diagnostics=lines)


def _equal(got: Json, wanted: Json) -> bool:
    """Compare what is no container; Python would take a true deep inside one for 1."""
    if members(got) is not None:
        return False
    return isinstance(got, bool) == isinstance(wanted, bool) and bool(got == wanted)
