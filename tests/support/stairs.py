"""A world in which each round of revision climbs one step, and every step's pass share is written down.

Twelve training tasks in each of two domains. A skill says its level; ``executor_options`` say how
many of four seeds pass at each level, with a task's own skill (``alone``) and with a merged one
(``merged``), and on which tasks every merged skill fails (``lost``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from support.counting import Counter, Counting, CountingSession

from wer import hookimpl
from wer.records import (
    End,
    JsonObject,
    Message,
    Reply,
    Sampling,
    Skill,
    Split,
    Step,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Usage,
)

SEED = "---\nname: stairs\ndescription: Climb.\n---\n\n## Workflow\n1. level 0\n"


class Stairs(Counting):
    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        first, count = (20, 12) if split == "train" else (40, 2)
        return tuple(
            Task(
                id=f"stairs/{domain}-{number}",
                env="stairs",
                domain=domain,
                split=split,
                turns=(f"Count to {number}.",),
                setup={"goal": number},
            )
            for number in range(first, first + count)
        )


class Climber(Counter):
    """Passes on as many of four seeds as the level of its skill is worth."""

    def __init__(self, model: object, options: JsonObject) -> None:
        super().__init__(model, options)
        self._options = options

    @property
    def identity(self) -> JsonObject:
        return {"agent": "climber", "options": self._options}

    async def execute(self, task: Task, skill: Skill, session: CountingSession, seed: int) -> Trajectory:
        turn = await session.begin()
        level = int(found[1]) if (found := re.search(r"level (\d+)", skill.body)) else 0
        merged = "merged" in skill.body
        able = seed % 4 < self._options["merged" if merged else "alone"][level]
        if merged and task.setup["goal"] in self._options.get("lost", ()):
            able = False
        calls = tuple(ToolCall(name="up", arguments={}) for _ in range(task.setup["goal"] if able else 1))
        answer = await session.call(calls)
        steps = (
            Step(turn=0, text="", calls=calls, observations=answer.observations),
            Step(turn=0, text="done"),
        )
        end = await session.say("done")
        assert isinstance(end, End)
        return Trajectory(messages=(turn.message,), steps=steps, end=end, seed=seed)


class Mason:
    """Writes the next level for one task, and merges skills into one of their highest level.

    Args:
        name: Who is called ``mute`` writes nothing that can be read.
    """

    def __init__(self, name: str) -> None:
        self._mute = name == "mute"
        self.asked: list[str] = []

    @property
    def identity(self) -> JsonObject:
        return {"provider": "mason"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        prompt = messages[-1].content
        self.asked.append(prompt)
        level = max(map(int, re.findall(r"level (\d+)", prompt)), default=0)
        task = re.search(r"Count to \d+", prompt)
        step = f"level {level} merged" if "# Skill 1" in prompt else f"level {level + 1} {task and task[0]}"
        text = (
            f"<think>why</think><skill>\nname: stairs\ndescription: Climb.\n## Workflow\n1. {step}\n</skill>"
        )
        text = "" if self._mute else text
        return Reply(text=text, usage=Usage(calls=1, prompt_tokens=100, completion_tokens=20))

    async def close(self) -> None: ...


@hookimpl
def wer_environments() -> Mapping[str, object]:
    return {"stairs": Stairs}


@hookimpl
def wer_executors() -> Mapping[str, object]:
    return {"climber": Climber}


@hookimpl
def wer_models() -> Mapping[str, object]:
    return {"mason": lambda setup: Mason(setup.name)}
