"""Trace2Skill's world for tests: made-up trajectories of one skill, and a writer that answers by a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from wer.contracts import Notebook, OptimizerSetup
from wer.records import (
    End,
    Evidence,
    JsonObject,
    Message,
    Observation,
    RefinementState,
    Reply,
    Rollout,
    Sampling,
    Skill,
    Step,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Usage,
    Verdict,
)

BASE = Skill(
    name="files",
    description="Work with files.",
    body="## Workflow\n1. Read the request.\n2. Answer.\n\n## Notes\n- Be brief.\n",
)
TOOLS = tuple(ToolSpec(name=name, description="", parameters={"type": "object"}) for name in ("list", "copy"))

Say = Callable[[str, str], str]
"""Given who is asked (``success``, ``error`` or ``merger``) and the last message, the answer."""


class Writer:
    """The one model: asks a function, and keeps what it was asked."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.asked: list[tuple[str, Sequence[Message], Sampling]] = []

    @property
    def identity(self) -> JsonObject:
        return {"provider": "scripted"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        who = next(
            word for word in ("success", "error", "merge") if f"ou {_ROLES[word]}" in messages[0].content
        )
        self.asked.append((who, tuple(messages), sampling))
        return Reply(text=self._say(who, messages[-1].content), usage=Usage(calls=1))

    async def close(self) -> None: ...

    def requests(self, who: str) -> list[str]:
        """The last message of every request to one role."""
        return [messages[-1].content for asked, messages, _ in self.asked if asked == who]


_ROLES = {"success": "are a success analyst", "error": "are an error analyst", "merge": "merge patches"}


def setup(writer: Writer, *, notes: Notebook | None = None, lines: list[str] | None = None, **options: Any):
    """What the optimizer is made from."""
    return OptimizerSetup(
        writer="scripted",
        open_model=lambda: writer,
        k=2,
        phases=0,
        seed=0,
        temperature=1.0,
        top_k=0,
        max_prompt_tokens=options.pop("max_prompt_tokens", 50_000),
        max_response_tokens=500,
        options=options,
        progress=(lines if lines is not None else []).append,
        check=lambda: None,
        charge=lambda usage: None,
        record=lambda step, metrics: None,
        notes=notes or Notebook(),
    )


def state(name: str, *passed: bool, skill: Skill = BASE) -> RefinementState:
    """A task with a rollout for each outcome: a success lists, then copies; a failure only lists."""
    task = Task(
        id=name, env="world", domain="World of Files", split="train", turns=(f"Do {name}.",), tools=TOOLS
    )
    rollouts = tuple(rollout(task, skill, good, number) for number, good in enumerate(passed))
    return RefinementState(task=task, skill=skill, evidence=rollouts)


def rollout(task: Task, skill: Skill, passed: bool, number: int = 0) -> Rollout:
    names = ("list", "copy") if passed else ("list",)
    steps = tuple(
        Step(
            turn=0,
            text="",
            calls=(ToolCall(name=name, arguments={"what": f"{task.id}_77.txt"}),),
            observations=(Observation(text=f"{name} is done"),),
        )
        for name in names
    )
    end = End(by="agent")
    return Rollout(
        key=f"{task.id}-{number}",
        task_id=task.id,
        skill_id=skill.id,
        seed=number,
        trajectory=Trajectory(messages=task.turns, steps=steps, end=end, seed=number),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(
            score=float(passed), passed=passed, diagnostics=() if passed else ("nothing was copied",)
        ),
    )


def reference(good: bool = True) -> Callable[[Task], Any]:
    """Plays a reference that passes, or one that doesn't."""

    async def play(task: Task) -> Rollout:
        return evolve(rollout(task, BASE, True), verdict=Verdict(score=float(good), passed=good))

    return play


def patch(*edits: Mapping[str, Any], skill: str = "files", **more: Any) -> str:
    """A success analyst's or a merger's answer."""
    return json.dumps({"skill": skill, **more, "edits": list(edits)})


def diagnosed(*edits: Mapping[str, Any], skill: str = "files", **changes: Any) -> str:
    """An error analyst's answer: it stopped after its first step, where it should have copied."""
    found = {"step": 1, "quote": "list is done", "cause": "It stopped too early.", "fix": 2, **changes}
    return json.dumps({"skill": skill, **found, "edits": list(edits)})


def edit(op: str, text: str = "", *, anchor: str = "", section: str = "Notes", **more: Any) -> dict[str, Any]:
    return {"op": op, "section": section, "anchor": anchor, "text": text, "lesson": f"Because {text}", **more}


def note(text: str, **more: Any) -> dict[str, Any]:
    return edit("note", text, **more)


def ids(request: str) -> dict[str, str]:
    """The edits that a merger was shown: texts by their ids."""
    lines = [json.loads(line) for line in request.splitlines() if line.startswith('{"id"')]
    return {line["id"]: line["text"] for line in lines}


def supports(request: str) -> dict[str, int]:
    """The edits that a merger was shown: how many trajectories are behind a text."""
    lines = [json.loads(line) for line in request.splitlines() if line.startswith('{"id"')]
    return {line["text"]: line["support"] for line in lines}
