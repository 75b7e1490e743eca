"""The critic: evaluate, compare, localise the earliest causal error, and ask for a bounded edit, in this order."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from wer.records import JsonObject, Message
from wer_skiller.bundle import Bundle
from wer_skiller.memory import Attempt, told_attempts
from wer_skiller.situation import Situation, told_rollout, told_task, told_verdict
from wer_skiller.talking import Refusal, parsed

INFRASTRUCTURE = "infrastructure failure"
FAILURES = ("procedural omission", "tool misuse", "output-contract violation", INFRASTRUCTURE)
"""The classes of the paper. The last one is not the skill's doing, so nothing is edited."""

_TEXTS = ("evaluation", "comparison", "cause", "signature", "instruction")

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "evaluation": {"type": "string"},
        "comparison": {"type": "string"},
        "step": {"type": "integer"},
        "cause": {"type": "string"},
        "failure": {"type": "string", "enum": list(FAILURES)},
        "signature": {"type": "string"},
        "instruction": {"type": "string"},
    },
    "required": ["evaluation", "comparison", "step", "cause", "failure", "signature", "instruction"],
    "additionalProperties": False,
}
"""In the order of the four operations: what is written first is what the rest leans on."""

_SYSTEM = """\
You are the critic of a written skill that a small, frozen tool-using agent reads in its system prompt. You see a \
task, the skill, what the agent did, what the verifier found, and a trajectory that succeeded, which the agent never \
sees. Work in this order and answer with one JSON object whose keys come in this order:
1. "evaluation": what the agent did and what it did not achieve, by the verifier's findings.
2. "comparison": where what it did departs from the success in a way that matters.
3. "step" and "cause": the number of the earliest step of the agent that caused the failure (0: it did nothing), and \
why. Later symptoms of it don't count.
   "failure": "procedural omission" (a necessary step was left out or came too late), "tool misuse" (a wrong tool, or \
wrong arguments), "output-contract violation" (the result has the wrong form), or "infrastructure failure" (the \
machine, the network or the tools themselves failed: no skill can help, and none is edited).
   "signature": the failure in at most ten words, so that it is recognised when it comes again.
4. "instruction": one bounded edit of the skill that prevents this error, for the actor who makes it: what to add or \
change and where, at most {edits} small edits. Keep what works. Write how the right values are found in the input at \
run time, never the values themselves: no file names, ids, amounts or texts of this task or of the success."""


@frozen(kw_only=True)
class Diagnosis:
    """What the critic found.

    Attributes:
        step: The earliest causal error, counted from 1; 0 when the agent did nothing.
        failure: One of `FAILURES`.
        signature: Short: failures of one kind should share it.
        instruction: For the actor; empty when nothing is to be edited.
    """

    evaluation: str
    comparison: str
    step: int
    cause: str
    failure: str
    signature: str
    instruction: str


def critic_messages(
    here: Situation, bundle: Bundle, attempts: Sequence[Attempt], *, max_edits: int
) -> tuple[Message, ...]:
    """Ask for a diagnosis of the current rollout [s_i, and the replay memory]."""
    assert here.current is not None
    parts = [
        told_task(here.task),
        bundle.told(),
        told_rollout("What the agent did", here.current),
        told_verdict(here.current),
    ]
    if here.success is not None:
        parts.append(told_rollout("A success (the agent never sees it)", here.success))
    parts += told_attempts(attempts)
    return (
        Message(role="system", content=_SYSTEM.format(edits=max_edits)),
        Message(role="user", content="\n\n".join(parts)),
    )


def read_diagnosis(text: str, *, steps: int) -> Diagnosis:
    """Read the critic's answer.

    Args:
        steps: Of the rollout that it judged.

    Raises:
        Refusal: It is not such an answer, or points at a step that there is not.
    """
    found = parsed(text)
    missing = [key for key in SCHEMA["required"] if key not in found]
    if missing:
        raise Refusal(f"the answer lacks {', '.join(map(repr, missing))}")
    wrong = [key for key in _TEXTS if not isinstance(found[key], str)]
    if wrong:
        raise Refusal(f"{wrong[0]!r} must be a text")
    if found["failure"] not in FAILURES:
        raise Refusal(f"'failure' must be one of {', '.join(FAILURES)}, got {found['failure']!r}")
    step = found["step"]
    if type(step) is not int or not 0 <= step <= steps:
        raise Refusal(f"'step' must be the number of a step of the agent, 0 to {steps}, got {step!r}")
    if found["failure"] != INFRASTRUCTURE and not found["instruction"].strip():
        raise Refusal("'instruction' is empty: a diagnosis without an edit changes nothing")
    return Diagnosis(step=step, failure=found["failure"], **{key: found[key].strip() for key in _TEXTS})
