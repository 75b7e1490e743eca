"""SKILLER's world for tests: real BFCL prefix tasks in the process sandbox, a scripted writer, an agent that obeys.

The agent makes the reference's calls when its skill holds the working line (or, with
another line, on half of the seeds), calls a script's tool first when the skill says so, and else says that it is done.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from wer import hookimpl, plugins
from wer.configuration import resolve
from wer.display import Display
from wer.loop.opening import Run, opened
from wer.loop.seeding import Scanned, scan
from wer.records import JsonObject, Message, Reply, Sampling, Skill, ToolCall, ToolSpec, Usage
from wer.store import Store

WORKS = "Do all that the user asks."
SOMETIMES = "Do all of it at times."
SCRIPT = "First call script_shout with the word hello."
SEED = Skill(
    name="files",
    description="Work with files.",
    body="## Workflow\n1. Read the request.\n## Notes\n- Be brief.\n",
)

Answer = Callable[[str], str]
"""Given the request's last message, what a scripted writer answers."""


class Agent:
    """The executor's model; keeps all that it was sent."""

    @property
    def identity(self) -> JsonObject:
        return {"provider": "agent"}

    def __init__(self, references: Mapping[str, Sequence[ToolCall]]) -> None:
        self._references = references
        self.sent: list[tuple[Sequence[Message], Sequence[ToolSpec]]] = []

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        self.sent.append((tuple(messages), tuple(tools)))
        system = messages[0].content if messages[0].role == "system" else ""
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=1)
        done = [call.name for message in messages for call in message.calls]
        if SCRIPT in system and "script_shout" not in done:
            call = ToolCall(name="script_shout", arguments={"word": "hello"}, id="s")
            return Reply(text="", calls=(call,), finish="tool_calls", usage=usage)
        asked = next(message.content for message in messages if message.role == "user")
        able = WORKS in system or (SOMETIMES in system and sampling.seed % 2 == 0)
        wanted = tuple(self._references[asked]) if able else ()
        if wanted and not set(done) - {"script_shout"}:
            return Reply(text="", calls=wanted, finish="tool_calls", usage=usage)
        return Reply(text="Done.", usage=usage)

    async def close(self) -> None: ...


class Scribe:
    """A writer with a script of answers for the critic and one for the actor, in order; the last one stays."""

    @property
    def identity(self) -> JsonObject:
        return {"provider": "scribe"}

    def __init__(self, critic: Sequence[str | Answer] = (), actor: Sequence[str | Answer] = ()) -> None:
        self._scripts = {"critic": list(critic), "actor": list(actor)}
        self.asked: list[tuple[str, Sequence[Message], Sampling]] = []

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        who = "critic" if "You are the critic" in messages[0].content else "actor"
        self.asked.append((who, tuple(messages), sampling))
        script = self._scripts[who]
        answer = script.pop(0) if len(script) > 1 else script[0]
        text = answer if isinstance(answer, str) else answer(messages[-1].content)
        return Reply(text=text, usage=Usage(calls=1, prompt_tokens=100, completion_tokens=20))

    async def close(self) -> None: ...

    def requests(self, who: str) -> list[str]:
        """The last message of each request to the critic or the actor."""
        return [messages[-1].content for asked, messages, _ in self.asked if asked == who]


def diagnosis(**changes: Any) -> str:
    """A critic's answer."""
    given = {
        "evaluation": "Nothing was done.",
        "comparison": "The success calls tools.",
        "step": 1,
        "cause": "The agent stopped at once.",
        "failure": "procedural omission",
        "signature": "stops at once",
        "instruction": "Tell it to act.",
    }
    return json.dumps({**given, **changes})


def edits(*listed: Mapping[str, str]) -> str:
    """An actor's answer."""
    return json.dumps({"edits": list(listed)})


def edit(op: str, text: str = "", anchor: str = "", path: str = "SKILL.md") -> Mapping[str, str]:
    return {"op": op, "path": path, "anchor": anchor, "text": text}


def note(text: str) -> str:
    """An actor's answer that adds one note."""
    return edits(edit("insert", f"- {text}", "- Be brief."))


class Open:
    """An open run, its models and its first rollouts."""

    def __init__(self, run: Run, agent: Agent, scribe: Scribe, scanned: tuple[Scanned, ...]) -> None:
        self.run = run
        self.agent = agent
        self.scribe = scribe
        self.scanned = scanned

    @property
    def sent(self) -> str:
        """All that the executor was sent since the first rollouts: every message, and every tool."""
        return "\n".join(
            json.dumps(
                [[m.role, m.content, [c.name for c in m.calls]] for m in messages if m.role == "system"]
            )
            + json.dumps([[t.name, t.description, t.parameters] for t in tools])
            for messages, tools in self.agent.sent
        )


@asynccontextmanager
async def opened_run(
    folder: Path, scribe: Scribe, *, tasks: int = 1, **overrides: Any
) -> AsyncIterator[Open]:
    """Open a run over the first training tasks of File System, cut to one turn, and roll the seed skill out."""
    config = resolve(
        None,
        None,
        (),
        {
            "env": ["bfcl"],
            "domains": ["file_system"],
            "executor": "agent/a",
            "writer": "scribe/s",
            "backend": "skiller",
            "sandbox": "process",
            "environment.bfcl.max_turns": 1,
            "training.phases": 0,
            "training.train_limit": tasks,
            "evaluation.test_limit": 1,
            "refinement.n": 1,
            "training.n": 1,
            **{key.replace("__", "."): value for key, value in overrides.items()},
        },
    )
    found = plugins.load(extra=(_models(scribe),))
    store = _store(folder)
    with Display(Console(quiet=True)) as display:
        async with opened(config, folder=folder, store=store, plugins=found, display=display) as run:
            agent = run.plugins.model("agent/a", gpus=(), folder=None, say=print)
            train = run.domains[0].train
            scanned = await scan(run, {task.key: SEED for task in train}, train, label="seed")
            yield Open(run, agent, scribe, scanned)


def _store(folder: Path) -> Store:
    folder.mkdir(exist_ok=True)
    database = folder / "wer.sqlite"
    return Store(database, create=not database.exists())


def _models(scribe: Scribe) -> ModuleType:
    made: list[Agent] = []

    def agent(_: object) -> Agent:
        if not made:
            bfcl = plugins.load().environments.make("bfcl", {"max_turns": 1})
            tasks = (*bfcl.tasks("file_system", "train"), *bfcl.tasks("file_system", "test"))
            made.append(Agent({task.turns[0]: bfcl.reference(task)[0] for task in tasks}))
        return made[0]

    module = ModuleType("skiller_models")

    @hookimpl
    def wer_models() -> Mapping[str, Any]:
        return {"agent": agent, "scribe": lambda _: scribe}

    module.wer_models = wer_models  # type: ignore[attr-defined]
    return module
