"""The actor: turns an instruction into exact edits of the bundle, and helper scripts where code is surer than words."""

from __future__ import annotations

from collections.abc import Sequence

from wer.records import Json, JsonObject, Message
from wer.scripts import PREFIX
from wer_skiller.bundle import OPERATIONS, Bundle, Edit
from wer_skiller.critic import Diagnosis
from wer_skiller.memory import Attempt, told_attempts
from wer_skiller.situation import Situation, told_rollout, told_task
from wer_skiller.talking import Refusal, parsed

_KEYS = ("op", "path", "anchor", "text")

_SYSTEM = """\
You are the actor who edits the skill bundle of a small, frozen tool-using agent: SKILL.md, whose body it reads in its \
system prompt{and_scripts}. Answer with one JSON object {{"edits": [...]}} of 1 to {edits} edits, each with "op", \
"path", "anchor" and "text":
- "insert": "text" comes on lines of its own below the line in which "anchor" ends.
- "replace": "text" takes the place of "anchor".
- "delete": "anchor" goes away; an empty anchor deletes a whole script.
- "create": a new file "path" with "text"; "anchor" is empty.
An anchor is copied exactly from the file and occurs in it once. All that you don't edit stays as it is, so touch \
nothing that works. SKILL.md begins with front matter (---, name: lower-case-words, description: one line, ---), then \
"## Workflow" with numbered steps and "## Notes".
For example, for an agent that books meeting rooms and whose skill has the line "1. Read the request.":
{{"edits": [{{"op": "insert", "path": "SKILL.md", "anchor": "1. Read the request.", "text": "2. List the \
free rooms, and book one of them."}}]}}
A skill is a procedure for what comes at run time, never the solution of one task: say how a value is found in the \
user's words or in a tool's result, and quote no file names, ids, amounts or texts of the task or of a success."""

_AND_SCRIPTS = ", and scripts, which it can call"

_SCRIPTS = """
A deterministic computation that the agent gets wrong (parsing, counting, dates, sorting, formats) belongs into a \
script: create scripts/NAME.py, which the agent calls as the tool {prefix}NAME, and say in SKILL.md when to call it. \
It is Python of the standard library with exactly one public function, annotated with str, int, float, bool, list[...] \
or dict[str, ...], with a docstring (with "Args:") that says what it does. It sees its arguments alone: no files, no \
network, none of the agent's tools. Create scripts/test_NAME.py with it: lines such as assert NAME(...) == ..., on \
made-up inputs."""


def edits_schema(max_edits: int) -> JsonObject:
    """What the actor's answers are constrained to."""
    edit = {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": list(OPERATIONS)},
            **{key: {"type": "string"} for key in _KEYS[1:]},
        },
        "required": list(_KEYS),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"edits": {"type": "array", "minItems": 1, "maxItems": max_edits, "items": edit}},
        "required": ["edits"],
        "additionalProperties": False,
    }


def repair_messages(
    here: Situation, bundle: Bundle, diagnosis: Diagnosis, attempts: Sequence[Attempt], *, system: str
) -> tuple[Message, ...]:
    """Ask for the edits that a diagnosis asks for. The success stays with the critic."""
    parts = [
        told_task(here.task),
        bundle.told(),
        *told_attempts(attempts),
        f"# Diagnosis\nstep {diagnosis.step}, {diagnosis.failure}: {diagnosis.cause}\n"
        f"compared with a success: {diagnosis.comparison}",
        f"# Instruction\n{diagnosis.instruction}",
    ]
    return (Message(role="system", content=system), Message(role="user", content="\n\n".join(parts)))


def initial_messages(here: Situation, bundle: Bundle, *, system: str) -> tuple[Message, ...]:
    """Ask for the task's own bundle: the baseline skill, refined with the task and a success [appendix E]."""
    assert here.success is not None
    parts = [
        told_task(here.task),
        bundle.told(),
        told_rollout("A success (the agent never sees it)", here.success),
        "# Instruction\nRefine the baseline skill for tasks of this kind: add what the success shows to be necessary "
        "and the skill does not say, as guidance that depends on the input at run time.",
    ]
    return (Message(role="system", content=system), Message(role="user", content="\n\n".join(parts)))


def actor_system(*, max_edits: int, scripts: bool) -> str:
    """What the actor is told about its edits."""
    told = _SYSTEM.format(edits=max_edits, and_scripts=_AND_SCRIPTS if scripts else "")
    return told + (_SCRIPTS.format(prefix=PREFIX) if scripts else "")


def read_edits(text: str, *, max_edits: int) -> tuple[Edit, ...]:
    """Read the actor's answer.

    Raises:
        Refusal: It is no list of edits, or too long a one.
    """
    listed = parsed(text).get("edits")
    if not isinstance(listed, list) or not 0 < len(listed) <= max_edits:
        raise Refusal(f"'edits' must be a list of 1 to {max_edits} edits")
    return tuple(_edit(number, found) for number, found in enumerate(listed, 1))


def _edit(number: int, found: Json) -> Edit:
    given = {key: found.get(key, "") for key in _KEYS} if isinstance(found, dict) else {}
    if not given or not all(isinstance(value, str) for value in given.values()):
        raise Refusal(f"edit {number} must be an object of texts: {', '.join(_KEYS)}")
    if given["op"] not in OPERATIONS:
        raise Refusal(f"edit {number}: 'op' must be one of {', '.join(OPERATIONS)}, got {given['op']!r}")
    return Edit(**given)
