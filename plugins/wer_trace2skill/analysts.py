"""Success and error analysts: each sees the frozen base and one trajectory, and proposes a patch [Eq. 6]."""

from __future__ import annotations

from attrs import evolve, frozen

from wer.chat import dumps
from wer.leaks import Leak, private, sentence
from wer.records import JsonObject, Message, Rollout, Sampling, Skill, Task, ToolCall
from wer.skills.cleaning import harmless
from wer_trace2skill.asking import Reading, Refusal, Settled, Writer, parsed
from wer_trace2skill.conflicts import Patch
from wer_trace2skill.edits import DEEPENING, Edit, read_edit
from wer_trace2skill.telling import (
    edit_schema,
    step_lines,
    told_operations,
    told_skill,
    told_task,
    told_trajectory,
    told_verdict,
)

_SUCCESS = """\
You are a success analyst. A frozen tool-using agent read the base skill and solved a task. Find the behaviour \
patterns of this trajectory that led to the right result and that will help with other tasks of the family, and \
propose a patch that encodes them in the base skill: leave out what it already says. Answer with one JSON object: \
"skill": "{skill}" (the base skill's name) and "edits", at most {edits}, each with "op", "section", "anchor", "text" \
and "lesson":
{operations}"""

_ERROR = """\
You are an error analyst. A frozen tool-using agent read the base skill and failed at a task. You see what it did, \
what the verifier found{and_success}. Work in this order and answer with one JSON object:
1. "skill": "{skill}", the base skill's name.
2. "step" and "quote": the earliest step of the agent that caused the failure (0: it did nothing at all), and words \
copied exactly from what that step said, called or saw. Later symptoms don't count.
3. "cause": why that step made it fail, as a systematic reason. Don't guess.
4. "fix": the minimal fix, as the number of the step of the success whose calls should have been made there instead \
(0: the calls of the agent's step should not have been made at all, or no success is shown).
5. "edits": at most {edits} that keep the agent from such failures in other tasks of the family, each with "op", \
"section", "anchor", "text" and "lesson"; never mention the success:
{operations}
Step, quote and fix are checked by program. A failure whose cause can't be verified gives no patch."""


@frozen(kw_only=True)
class Case:
    """One trajectory to analyse.

    Attributes:
        success: Of the same task, for an error analyst to compare with: the reference's or, without
            one, a rollout that passed. Never shown to an agent.
    """

    task: Task
    rollout: Rollout
    success: Rollout | None = None


@frozen(kw_only=True)
class Analysts:
    """Both kinds, with the frozen base that all of them patch."""

    writer: Writer
    base: Skill
    max_edits: int
    temperature: float
    error_turns: int
    max_tokens: int

    async def analyse(self, case: Case, seed: int) -> Settled[Patch]:
        """Have one trajectory's patch: in a single pass of a success, in a loop of a failure.

        Raises:
            PromptTooLong: The trajectory does not fit, and is never cut.
            ModelError: The model's own failure.
        """
        passed = case.rollout.verdict.passed
        sampling = Sampling(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=seed,
            json_schema=_schema(self.max_edits, diagnosis=not passed),
        )
        return await self.writer.settle(
            f"{'success' if passed else 'error'} analyst, {case.task.id}",
            self._messages(case),
            sampling,
            lambda text: self._read(text, case),
            turns=1 if passed else self.error_turns,
        )

    def _messages(self, case: Case) -> tuple[Message, ...]:
        passed = case.rollout.verdict.passed
        system = (_SUCCESS if passed else _ERROR).format(
            skill=self.base.name,
            edits=self.max_edits,
            operations=told_operations(DEEPENING),
            and_success=", and a success at the same task, which the agent never sees"
            if case.success
            else "",
        )
        parts = [told_task(case.task), told_skill(self.base)]
        parts.append(told_trajectory("What the agent did", case.rollout.trajectory))
        if not passed:
            parts.append(told_verdict(case.rollout))
        if not passed and case.success:
            parts.append(told_trajectory("A success (the agent never sees it)", case.success.trajectory))
        return (
            Message(role="system", content=system),
            Message(role="user", content="\n\n".join(parts)),
        )

    def _read(self, text: str, case: Case) -> Reading[Patch]:
        try:
            found = parsed(text, skill=self.base.name)
            listed = found.get("edits")
            if not isinstance(listed, list) or not 0 < len(listed) <= self.max_edits:
                raise Refusal("nonsense", f"'edits' must be a list of 1 to {self.max_edits} edits")
            if not case.rollout.verdict.passed:
                _demand_cause(found, case)
        except Refusal as refusal:
            return Reading(value=None, refused=(refusal,))
        edits: list[Edit] = []
        refused: list[Refusal] = []
        for each in listed:
            try:
                edit = _general(read_edit(each, self.base.body, operations=DEEPENING), case)
                edits.append(evolve(edit, support=frozenset({case.rollout.key})))
            except Refusal as refusal:
                refused.append(refusal)
        return Reading(value=Patch(edits=tuple(edits)) if edits else None, refused=tuple(refused))


def _schema(max_edits: int, *, diagnosis: bool) -> JsonObject:
    found = {
        "step": {"type": "integer"},
        "quote": {"type": "string"},
        "cause": {"type": "string"},
        "fix": {"type": "integer"},
    }
    properties = {
        "skill": {"type": "string"},
        **(found if diagnosis else {}),
        "edits": {"type": "array", "minItems": 1, "maxItems": max_edits, "items": edit_schema(DEEPENING)},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _demand_cause(found: JsonObject, case: Case) -> None:
    """Let a failure's diagnosis through only where the trajectories bear it out [the quality gate].

    Raises:
        Refusal: They don't.
    """
    steps = case.rollout.trajectory.steps
    number, quote, cause = found.get("step"), found.get("quote"), found.get("cause")
    if not isinstance(cause, str) or not cause.strip():
        raise Refusal("unverified cause", "'cause' is empty")
    if type(number) is not int or not 0 <= number <= len(steps):
        raise Refusal("unverified cause", f"'step' must be 0 to {len(steps)}, got {number!r}")
    if number:
        told = _words(harmless("\n".join(step_lines(steps[number - 1]))))
        if not isinstance(quote, str) or not quote.strip() or _words(quote) not in told:
            raise Refusal("unverified cause", f"'quote' does not occur in step {number}; copy it exactly")
    elif any(step.calls for step in steps):
        raise Refusal("unverified cause", "'step' is 0, and the agent did call tools")
    if case.success is not None:
        _demand_fix(found.get("fix"), _calls(case.rollout, number), case.success)


def _demand_fix(fix: object, made: set[str], success: Rollout) -> None:
    """Compare with the success: the fix must bring calls that were not made, or leave out one that it lacks."""
    count = len(success.trajectory.steps)
    if type(fix) is not int or not 0 <= fix <= count:
        raise Refusal("unverified cause", f"'fix' must be a step of the success, 0 to {count}, got {fix!r}")
    if fix and _calls(success, fix) <= made:
        raise Refusal(
            "unverified cause", f"'fix': the agent made the calls of step {fix} of the success there"
        )
    everything = set().union(*(_calls(success, number) for number in range(1, count + 1)))
    if not fix and made <= everything:
        raise Refusal("unverified cause", "'fix' is 0, and the success makes the calls of that step as well")


def _general(edit: Edit, case: Case) -> Edit:
    """Keep values of this one task from mergers and skills; the user's own words are the configuration's ``leak``.

    Raises:
        Refusal: The edit's text quotes such values. A lesson that does is taken off the edit.
    """
    success = case.success
    reference = [step.calls for step in success.trajectory.steps] if success else None
    own = private(case.task, reference=reference, rollouts=(case.rollout, *((success,) if success else ())))

    def leaks(text: str) -> list[Leak]:
        return [leak for leak in own.leaks(Skill(body=text)) if leak.source != "query"]

    found = leaks(edit.text)
    if found:
        raise Refusal("leak", f"an edit {sentence(found)}. Say how such values are found at run time.")
    return evolve(edit, lesson="") if leaks(edit.lesson) else edit


def _calls(rollout: Rollout, number: int) -> set[str]:
    return {_written(call) for call in rollout.trajectory.steps[number - 1].calls} if number else set()


def _written(call: ToolCall) -> str:
    return f"{call.name}({dumps(dict(sorted(call.arguments.items())))})"


def _words(text: str) -> str:
    return " ".join(text.split())
