"""The counting world for nodes of a cluster: an agent that takes its time and notes where it ran.

A test gives it to the nodes as any third-party plugin comes to them: by an entry point of an
installed distribution. `install` writes the few files that make one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve
from support.counting import Counter, MemoryPool, MemorySandbox, Writer
from support.counting import wer_environments as wer_environments
from support.counting import wer_verifiers as wer_verifiers

from wer import hookimpl
from wer.errors import ConfigError, ModelError, SandboxError
from wer.records import JsonObject, Message, Sampling, SandboxSpec


def install(site: Path, *, plugin: str = "support.afar", version: str = "") -> Path:
    """Make a folder for PYTHONPATH in which a plugin, or another WER version, counts as installed."""
    name = "wer_skills" if version else "counting_afar"
    info = site / f"{name}-{version or '1.0'}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version or '1.0'}\n"
    )
    if not version:
        (info / "entry_points.txt").write_text(f"[wer]\nafar = {plugin}\n")
    return site


class Walker(Counter):
    """Counts as the counter does, asks its model once, and notes each unit that it began.

    Its options: ``log``, a file that gets a line ``PID TASK SKILL SEED`` a unit; ``sleep_s``.
    """

    def __init__(self, model, options: JsonObject) -> None:
        super().__init__(model, options)
        self._model = model
        self._options = options

    @property
    def identity(self) -> JsonObject:
        return {"agent": "walker", "shoes": os.environ.get("WALKER_SHOES", "old")}

    async def execute(self, task, skill, session, seed):
        if "log" in self._options:
            self._note(f"{os.getpid()} {task.id} {skill.id} {seed}\n")
        reply = await self._model.complete([Message(role="user", content="walk")], (), Sampling(seed=seed))
        await asyncio.sleep(self._options.get("sleep_s", 0))
        trajectory = await super().execute(task, skill, session, seed)
        return evolve(trajectory, usage=reply.usage)

    def _note(self, line: str) -> None:
        with Path(self._options["log"]).open("a") as log:
            log.write(line)


class Keyed(Writer):
    """A model that needs a key in the environment."""

    def __init__(self, rest: str) -> None:
        super().__init__(rest)
        if "WALKER_KEY" not in os.environ:
            raise ConfigError("WALKER_KEY is not set")


class Refusing(Writer):
    """A model that turns everybody away for good."""

    async def complete(self, messages, tools, sampling):
        raise ModelError("401: no such key")


class Roomless(MemorySandbox):
    async def start(self, spec: SandboxSpec, workers: int) -> MemoryPool:
        raise SandboxError("there is no room for a sandbox", cause="start", stderr_tail="disk full")


@hookimpl
def wer_executors() -> Mapping[str, object]:
    return {"walker": Walker}


@hookimpl
def wer_models() -> Mapping[str, object]:
    return {
        "scribe": lambda setup: Writer(setup.name),
        "keyed": lambda setup: Keyed(setup.name),
        "refusing": lambda setup: Refusing(setup.name),
    }


@hookimpl
def wer_sandboxes() -> Mapping[str, object]:
    return {"memory": MemorySandbox, "dying": lambda: MemorySandbox(dying=2), "roomless": Roomless}
