"""A verdict for any environment whose state is JSON: the last state must equal the expected one."""

from __future__ import annotations

import itertools

from wer.errors import VerifierError
from wer.records import Evidence, Json, Task, Trajectory, Verdict
from wer_state_match.differences import differences

MAX_LINES = 6


class StateMatch:
    """Passes when the state after the last turn equals ``expect``, which is that state as JSON.

    Objects compare by key whatever their order, lists by position, numbers as numbers
    (1 and 1.0 are equal), and true is not 1.
    """

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        if expect is None:
            raise VerifierError(
                f"{task.id} has no expected state to compare with. Let the environment's "
                "`expect` return it, or choose another verifier."
            )
        if not evidence.turns:
            return Verdict(score=0.0, passed=False, diagnostics=("the episode ended before its first turn",))
        found = tuple(itertools.islice(differences(evidence.turns[-1].state, expect), MAX_LINES))
        return Verdict(score=float(not found), passed=not found, diagnostics=found)
