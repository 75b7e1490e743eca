"""The check that the options name, as a verifier."""

from __future__ import annotations

from wer import references
from wer.domain.checking import CheckVerifier
from wer.records import Evidence, Json, Task, Trajectory, Verdict


class McpCheck:
    """Judges with the check that was named when the rollout was made: the expectation carries its place."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Ask the check; see `wer.domain.checking.CheckVerifier`.

        Raises:
            ConfigError: The check is not there any more.
        """
        check = CheckVerifier(references.resolve(expect["check"]))
        return check.judge(task, trajectory, evidence, expect["expect"])
