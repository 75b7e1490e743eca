"""What a skill writer is asked, and how its answer is read.

One request serves every writer (prompted, trained in process, trained on a
cluster), because the paper has a single generation rule [Eq. 2]. The prompt
carries the tools, the skill in force and the evidence's call sequences verbatim;
nothing is summarised and nothing is cut, unless the state asks for less than the
paper does (its ``form``); only tokens of chat templates lose their brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import takewhile

from wer.errors import SkillError
from wer.records import (
    Candidate,
    Message,
    RefinementState,
    Rollout,
    Skill,
    Step,
    Task,
    Trajectory,
    Usage,
)
from wer.skills import parse_document, render_document
from wer.skills.cleaning import harmless
from wer.tooldocs import signatures

_FORMAT = """\
Answer with exactly two blocks and nothing else: your reasoning, then the skill. For example, for an agent that \
books meeting rooms:
<think>
The agent booked before it knew which rooms were free, so the booking failed. It should look first.
</think>
<skill>
name: book-rooms
description: Book and change meeting rooms.
## Workflow
1. List the free rooms of the building that the user names.
2. Book one of the rooms that the list shows, and nothing else.
## Notes
- A booking without a building fails.
</skill>
A skill is a procedure for every task of its family, never the solution of one task: it names tools and rules, but no \
file names, ids, amounts or other values of the task below. Say what to do first, with which tool, and what to avoid."""

_OPEN = "(a conversation: the user says in its course what they want)"

_KEPT_BEFORE = 3
"""User messages and steps before two rollouts part that are still told: what they parted from."""

_REMINDER = (
    "Begin with <think>, close it with </think>, then write one <skill> block and close it with </skill>."
)

_REVISE = (
    "You revise the written skill of a tool-using agent. The agent is frozen: it reads the skill in its "
    "system prompt, then calls tools. You see the task, the tools, the skill in force and what happened "
    "when the agent used it. Write a better skill: find the first step that went wrong, say what to do "
    "instead, keep what works.\n\n" + _FORMAT
)

_EVOLVE = (
    "You revise the written skill of a tool-using agent. The agent is frozen: it reads the skill in its "
    "system prompt, then calls tools. You see the task, the tools and every skill that was tried so far, oldest "
    "first, each with the rewards that it earned (1 is best) and what happened when the agent used it. Write a "
    "skill that earns more than all of them: keep what raised the rewards, and say what to do instead of what "
    "went wrong.\n\n" + _FORMAT
)

_SEED = (
    "You write a skill for a tool-using agent: a short procedure that it reads in its system prompt before "
    "it calls tools. You see one task of the family and the tools.\n\n" + _FORMAT
)

_MERGE = (
    "You merge the written skills of a tool-using agent into one. They come from tasks of one family. Keep "
    "the steps and notes that recur or that prevent a failure, drop duplicates and contradictions, and keep "
    "it shorter than {words} words.\n\n" + _FORMAT
)


def revision_messages(state: RefinementState) -> tuple[Message, ...]:
    """Ask for one revision of the state's skill [Eq. 2]."""
    skill = render_document(state.skill) if not state.skill.empty else "(none: the agent had no skill)"
    skip = _before_they_part(state.evidence) if state.form == "divergence" else 0
    blocks = [
        _context(state.task),
        f"# Skill in force\n{skill}",
        *(evidence_block("Success", rollout, skip=skip) for rollout in state.successes),
        *(evidence_block("Failure", rollout, skip=skip) for rollout in state.failures),
        f"Write the revised skill. {_REMINDER}",
    ]
    return (Message(role="system", content=_REVISE), Message(role="user", content="\n\n".join(blocks)))


def evolution_messages(task: Task, history: Sequence[str]) -> tuple[Message, ...]:
    """Ask for the next skill of one task, from everything that was tried on it so far.

    Args:
        history: A block a skill, oldest first; verbatim.
    """
    content = "\n\n".join([_context(task), *history, f"Write the next skill. {_REMINDER}"])
    return (Message(role="system", content=_EVOLVE), Message(role="user", content=content))


def seed_messages(task: Task) -> tuple[Message, ...]:
    """Ask for a draft from the query and the tools alone [cold start, (q, C)]."""
    content = f"{_context(task)}\n\nWrite the skill. {_REMINDER}"
    return (Message(role="system", content=_SEED), Message(role="user", content=content))


def merge_messages(skills: Sequence[Skill], *, max_words: int) -> tuple[Message, ...]:
    """Ask for one skill that consolidates several of one domain."""
    listed = "\n\n".join(f"# Skill {i}\n{render_document(skill)}" for i, skill in enumerate(skills, 1))
    return (
        Message(role="system", content=_MERGE.format(words=max_words)),
        Message(role="user", content=f"{listed}\n\nWrite the merged skill. {_REMINDER}"),
    )


_STRICT = re.compile(r"\s*<think>(.*?)</think>\s*<skill>(.*?)</skill>\s*", re.DOTALL)
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_SKILL = re.compile(r"<skill>((?:(?!<skill>).)*)</skill>", re.DOTALL)  # from the last opening on
_DELIMITER = re.compile(r"</?(?:think|skill)>")


def parse_candidate(
    text: str,
    *,
    state: RefinementState,
    index: int,
    token_ids: tuple[int, ...] = (),
    logprobs: tuple[float, ...] = (),
    usage: Usage | None = None,
) -> Candidate:
    """Read a writer's answer: the reasoning, and the skill if there is one.

    The answer is *well formed* when it is one reasoning block and one skill block,
    with no delimiter inside either, and the skill block parses [R_fmt]. A skill is
    also taken from an answer that is not well formed, as long as one can be found:
    retention looks at outcomes alone.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    skill, problem = read_skill(text, parent=state.skill)
    strict = _STRICT.fullmatch(text)
    exact = strict is not None and len(_DELIMITER.findall(text)) == 4
    if skill is not None and not exact:
        problem = "not exactly one <think> block and one <skill> block"
    think = _THINK.search(text)
    return Candidate(
        state_id=state.id,
        index=index,
        text=text,
        reasoning=think.group(1).strip() if think else "",
        skill=skill,
        well_formed=exact and skill is not None,
        problem=problem,
        token_ids=token_ids,
        logprobs=logprobs,
        usage=usage or Usage(),
    )


def unwritten(state: RefinementState, k: int) -> tuple[Candidate, ...]:
    """The group of a state that was left out because its prompt is too long: k candidates without a skill."""
    return tuple(
        Candidate(
            state_id=state.id,
            index=index,
            text="",
            reasoning="",
            skill=None,
            well_formed=False,
            problem="prompt too long",
        )
        for index in range(k)
    )


def read_skill(text: str, *, parent: Skill) -> tuple[Skill | None, str]:
    """Find the skill in a writer's answer; or None and the reason."""
    block = next(reversed(list(_SKILL.finditer(text))), None)
    if block is None:
        return None, "no <skill>...</skill> block in the answer"
    try:
        return parse_document(block.group(1), parent=parent), ""
    except SkillError as error:
        return None, str(error)


def render_trajectory(trajectory: Trajectory, *, skip: int = 0) -> str:
    """Write the call sequence verbatim: what was said, called and answered, in order.

    Args:
        skip: User messages and steps at the beginning that are left out, and counted in the first line.
    """
    lines = [line for event in _events(trajectory)[skip:] for line in event]
    if skip:
        lines.insert(0, f"(the first {skip} messages and steps, the same in both rollouts, are left out)")
    if trajectory.end.why != "done":
        lines.append(f"end: {trajectory.end.why}")
    return "\n".join(lines)


def _events(trajectory: Trajectory) -> list[list[str]]:
    """The lines of each user message and each step, in order."""
    events: list[list[str]] = []
    for index, message in enumerate(trajectory.messages):
        events.append([f"user: {message}"])
        events += [_step(step) for step in trajectory.steps if step.turn == index]
    return events


def _step(step: Step) -> list[str]:
    lines = [f"agent: {step.text.strip()}"] if step.text.strip() else []
    for call, seen in zip(step.calls, step.observations, strict=False):
        lines.append(f"call: {call.name}({json.dumps(call.arguments, ensure_ascii=False)})")
        lines.append(f"result: {seen.text}")
    return lines


def _before_they_part(pair: Sequence[Rollout]) -> int:
    """How many equal events at the beginning of two rollouts need not be told; 0 for anything but two."""
    if len(pair) != 2:
        return 0
    first, second = (_events(rollout.trajectory) for rollout in pair)
    alike = takewhile(lambda both: both[0] == both[1], zip(first, second, strict=False))
    return max(0, sum(1 for _ in alike) - _KEPT_BEFORE)


def _context(task: Task) -> str:
    parts = [signatures(task.tools)]
    if task.context:
        parts.append(f"# Environment\n{task.context}")
    parts.append("# Task\n" + ("\n".join(f"user: {turn}" for turn in task.turns) or _OPEN))
    return "\n\n".join(parts)


def evidence_block(title: str, rollout: Rollout, *, skip: int = 0) -> str:
    """Write one rollout for a prompt, verbatim, under a heading; ``skip`` as in `render_trajectory`."""
    return f"# {title}\n{harmless(render_trajectory(rollout.trajectory, skip=skip))}"
