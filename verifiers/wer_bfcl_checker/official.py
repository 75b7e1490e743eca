"""The official verdict of BFCL's multi-turn checker, from exported data alone.

It follows ``multi_turn_checker`` and the turn count of ``eval_runner`` in bfcl-eval
2026.3.23, which run the calls again and compare live objects; here the sandbox
exported both sides after every turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wer.differences import one_line
from wer.records import Evidence, Json, Task, Trajectory, TurnEvidence, Verdict
from wer_bfcl_checker.comparison import state_findings
from wer_bfcl_checker.expected import ExpectedTurn, expected_turns

_MAX_RESULTS = 3


class BfclChecker:
    """Passes when every turn left the reference's state and had the reference's results.

    A turn without a reference call is not checked, and one with such a call must have
    at least one call of the agent. The results of a turn's reference must all be among
    those that the agent has had so far, each as often.
    """

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Compare turn by turn, and tell what was wrong in the first turn that went wrong.

        Raises:
            VerifierError: ``expect`` is not what the BFCL environment makes.
        """
        wanted = expected_turns(expect)
        findings = _first_findings(evidence.turns, wanted)
        if len(evidence.turns) != len(wanted):
            findings.append(
                f"the episode ended ({evidence.end.why}) after {len(evidence.turns)} of {len(wanted)} turns"
            )
        passed = not findings
        return Verdict(score=float(passed), passed=passed, diagnostics=tuple(findings))


def _first_findings(turns: Sequence[TurnEvidence], wanted: Sequence[ExpectedTurn]) -> list[str]:
    """What was wrong in the first turn that went wrong: later turns only inherit it."""
    results: Counter[str] = Counter()
    for number, (turn, want) in enumerate(zip(turns, wanted, strict=False), start=1):
        results.update(turn.results)
        if not want.calls:
            continue
        if not turn.calls:
            return [f"turn {number}: no tool was called, though the turn needs one"]
        findings = state_findings(turn.state, want.state) + _missing_results(results, want)
        if findings:
            return [f"turn {number}: {finding}" for finding in findings]
    return []


def _missing_results(results: Counter[str], want: ExpectedTurn) -> list[str]:
    missing = list((Counter(want.results) - results).elements())
    lines = [f"a result is missing so far: {one_line(result)}" for result in missing[:_MAX_RESULTS]]
    if len(missing) > _MAX_RESULTS:
        lines.append(f"{len(missing) - _MAX_RESULTS} more expected results are missing")
    return lines
