"""How prompts tell the base skill, a task and a trajectory; verbatim, with brackets off chat templates' tokens."""

from __future__ import annotations

from wer.chat import dumps
from wer.records import JsonObject, Rollout, Skill, Step, Task, Trajectory
from wer.skills.cleaning import harmless
from wer.tooldocs import signatures
from wer_trace2skill.edits import KEYS, Operation

_OPERATIONS = {
    "insert": '"text" comes on lines of its own below the line in which "anchor" ends.',
    "replace": '"text" takes the place of "anchor".',
    "delete": '"anchor" goes away; "text" is empty.',
    "note": '"text" is added at the end of "section", which is made if it is not there; "anchor" is empty.',
    "section": '"text" is all that "section" says from now on; "anchor" is empty.',
}


def told_operations(operations: tuple[Operation, ...]) -> str:
    """The operations, a line each, and what holds for all."""
    listed = "\n".join(f'- "{each}": {_OPERATIONS[each]}' for each in operations)
    return (
        f"{listed}\n"
        "An anchor is copied exactly from the skill and occurs in it once. The skill has numbered steps under "
        '"## Workflow" and short items under "## Notes". "lesson" says in one sentence what is behind the edit.\n'
        "A skill is a concise, actionable procedure for what comes at run time, never the solution of one task: say "
        "how a value is found in the user's words or in a tool's result; quote no file names, ids, amounts or texts."
    )


def edit_schema(operations: tuple[Operation, ...], **more: JsonObject) -> JsonObject:
    """What one edit of an answer looks like."""
    texts = {key: {"type": "string"} for key in KEYS}
    properties = {**texts, "op": {"type": "string", "enum": list(operations)}, **more}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def told_skill(skill: Skill) -> str:
    """The base skill."""
    body = harmless(skill.body).rstrip()
    return (
        f"# Base skill {skill.name}\n{harmless(skill.description)}\n```\n{body or '(empty: add notes)'}\n```"
    )


def told_task(task: Task) -> str:
    """The tools, the environment, and what the user wants."""
    parts = [signatures(task.tools)]
    if task.context:
        parts.append(f"# Environment\n{task.context}")
    parts.append("# Task\n" + "\n".join(f"user: {turn}" for turn in task.turns))
    return "\n\n".join(parts)


def told_trajectory(title: str, trajectory: Trajectory) -> str:
    """A trajectory with its steps numbered from 1, so that one can be pointed at."""
    lines: list[str] = []
    steps = list(enumerate(trajectory.steps, 1))
    for turn, message in enumerate(trajectory.messages):
        lines.append(f"user: {message}")
        for number, step in steps:
            if step.turn == turn:
                lines += [f"step {number}, {line}" for line in step_lines(step)]
    if trajectory.end.why != "done":
        lines.append(f"end: {trajectory.end.why}")
    return f"# {title}\n" + harmless("\n".join(lines))


def step_lines(step: Step) -> list[str]:
    """What one step said, called and saw."""
    lines = [f"agent: {step.text.strip() or '(nothing)'}"] if step.text.strip() or not step.calls else []
    for call, seen in zip(step.calls, step.observations, strict=False):
        lines += [f"call: {call.name}({dumps(call.arguments)})", f"result: {seen.text}"]
    return lines


def told_verdict(rollout: Rollout) -> str:
    """What the verifier found."""
    verdict = rollout.verdict
    lines = "\n".join(f"- {line}" for line in verdict.diagnostics) or "- (no details)"
    return f"# Verifier\nscore {verdict.score:.2f}\n{harmless(lines)}"
