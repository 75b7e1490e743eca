"""The state that the critic judges [s_i = (x, tau_i, tau*, v_i)], and how a prompt tells it."""

from __future__ import annotations

from attrs import frozen

from wer.chat import dumps
from wer.contracts import OptimizerSetup
from wer.leaks import Private, private
from wer.records import RefinementState, Rollout, Task, Trajectory
from wer.skills.cleaning import harmless
from wer.tooldocs import signatures


@frozen(kw_only=True)
class Situation:
    """One refinement state as SKILLER sees it.

    Attributes:
        task: The instruction and the tools [x].
        current: The rollout to mend, the first that failed, with the verifier's diagnostics
            [tau_i, v_i]; None when nothing failed.
        success: A successful trajectory of the same task [tau*]: the reference's or, without one,
            a rollout that passed. For the writer alone.
        private: What of that success no skill may quote.
    """

    task: Task
    current: Rollout | None
    success: Rollout | None
    private: Private

    @property
    def steps(self) -> int:
        """Of the current trajectory."""
        return len(self.current.trajectory.steps) if self.current else 0


async def situation(state: RefinementState, setup: OptimizerSetup) -> Situation:
    """Take a state's failure, and a success to compare with.

    A reference that does not pass is none, and it is said.

    Raises:
        InfrastructureError: The reference could not be played.
    """
    played = await setup.reference(state.task)
    if played is not None and not played.verdict.passed:
        setup.progress(f"{state.task.id}: the reference does not pass, so nothing is compared with it")
        played = None
    calls = [step.calls for step in played.trajectory.steps] if played else None
    return Situation(
        task=state.task,
        current=next(iter(state.failures), None),
        success=played or next(iter(state.successes), None),
        private=private(state.task, reference=calls, rollouts=[played] if played else ()),
    )


def told_task(task: Task) -> str:
    """The tools, the environment, and what the user wants [x]."""
    parts = [signatures(task.tools)]
    if task.context:
        parts.append(f"# Environment\n{task.context}")
    parts.append("# Task\n" + "\n".join(f"user: {turn}" for turn in task.turns))
    return "\n\n".join(parts)


def told_rollout(title: str, rollout: Rollout) -> str:
    """A trajectory verbatim, its steps numbered from 1, so that one can be pointed at."""
    return f"# {title}\n{harmless(_numbered(rollout.trajectory))}"


def told_verdict(rollout: Rollout) -> str:
    """What the verifier found [v_i]."""
    verdict = rollout.verdict
    lines = "\n".join(f"- {line}" for line in verdict.diagnostics) or "- (no details)"
    return f"# Verifier\npassed: {str(verdict.passed).lower()}, score {verdict.score:.2f}\n{harmless(lines)}"


def _numbered(trajectory: Trajectory) -> str:
    lines: list[str] = []
    steps = list(enumerate(trajectory.steps, 1))
    for turn, message in enumerate(trajectory.messages):
        lines.append(f"user: {message}")
        for number, step in steps:
            if step.turn != turn:
                continue
            if step.text.strip() or not step.calls:
                lines.append(f"step {number}, agent: {step.text.strip() or '(nothing)'}")
            for call, seen in zip(step.calls, step.observations, strict=False):
                lines.append(f"step {number}, call: {call.name}({dumps(call.arguments)})")
                lines.append(f"step {number}, result: {seen.text}")
    if trajectory.end.why != "done":
        lines.append(f"end: {trajectory.end.why}")
    return "\n".join(lines)
