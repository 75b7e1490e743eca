"""The verdict as the paper's text has it: the terminal state against the reference's, and nothing else."""

from __future__ import annotations

from wer.records import Evidence, Json, Task, Trajectory, Verdict
from wer_bfcl_checker.comparison import state_findings
from wer_bfcl_checker.expected import expected_turns


class BfclFinalState:
    """Passes when the state at the end is the reference's, however the agent came there.

    It says nothing about questions that only need an answer, so an agent that does
    nothing passes the tasks whose reference leaves the state as it was.
    """

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Compare the last state; an episode that ended before its first turn fails.

        Raises:
            VerifierError: ``expect`` is not what the BFCL environment makes.
        """
        wanted = expected_turns(expect)[-1]
        if not evidence.turns:
            return Verdict(score=0.0, passed=False, diagnostics=("the episode ended before its first turn",))
        findings = state_findings(evidence.turns[-1].state, wanted.state)
        passed = not findings
        return Verdict(
            score=float(passed), passed=passed, diagnostics=tuple(f"at the end: {line}" for line in findings)
        )
