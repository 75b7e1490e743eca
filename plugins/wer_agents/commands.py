"""A program as a frozen agent: run once a turn in a folder of the rollout's own, where the skill lies as files."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from attrs import Attribute, evolve, field, frozen

from wer.contracts import AgentSetup, Executor
from wer.errors import ConfigError
from wer.records import JsonObject, Outcome, Skill
from wer.sandboxing.scratch import scratch_folder
from wer.skills import save_skill
from wer.skills.cleaning import harmless
from wer.tables import structure
from wer_agents import resetting
from wer_agents.conversation import Ask
from wer_agents.options import OutsideOptions
from wer_agents.outside import OutsideAgent
from wer_agents.program import run
from wer_agents.telling import outcome_in
from wer_agents.upstream import upstream_of
from wer_agents.words import Words

TURN_FILE = "WER_TURN"
"""The environment variable that names the file with all that the program is told."""

_ALWAYS = ("task", "seed", "skills", "turn", "outcome", "token")
_WITH_TOOLS = ("mcp_url", "mcp_config")
_WITH_MODEL = ("model_url",)


def _below(_: Any, attribute: Attribute[str], value: str) -> None:
    path = PurePosixPath(value)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(
            f"{attribute.name} is {value!r}; expected a folder below the working folder, such as '.claude/skills'"
        )


@frozen(kw_only=True)
class CommandOptions(OutsideOptions):
    """The table ``[executor_options]`` of a program.

    Attributes:
        skills: Folder of skills, below the folder in which the program is run: the skill is
            ``NAME/SKILL.md`` in it. Many agents look in one of their own, such as ``.claude/skills``.
    """

    skills: str = field(default="skills", validator=_below)


def command_agent(setup: AgentSetup) -> Executor:
    """Make the executor of a program.

    Raises:
        ConfigError: There is no such program, or a placeholder that nothing can be put in the place of.
    """
    if not sys.platform.startswith("linux"):
        raise ConfigError(
            "WER runs programs on Linux only, where it can end all of their processes. Name a function or an endpoint: "
            "--executor agent.py:answer, --executor http://127.0.0.1:8000/."
        )
    options = structure(CommandOptions, setup.options, where="executor_options")
    upstream = upstream_of(options)
    known = [*_ALWAYS, *(_WITH_TOOLS if setup.tools else ()), *(_WITH_MODEL if upstream else ())]
    words = Words.read(setup.name, known=known, setting="executor")
    return OutsideAgent(
        setup=setup,
        way=Command(words=words, skills=options.skills),
        reset=resetting.find(options.reset),
        upstream=upstream,
        version=options.version,
    )


@frozen(kw_only=True)
class Command:
    """A `wer_agents.outside.Way`."""

    words: Words
    skills: str

    @property
    def name(self) -> str:
        """The program, and the script that it runs."""
        return f"your agent '{self.words.name}'"

    @property
    def identity(self) -> JsonObject:
        """The words with the content of the files that they name, and where the skill lies."""
        return {"executor": "command", "command": self.words.digest, "skills": self.skills}

    @asynccontextmanager
    async def opened(self, skill: Skill, token: str) -> AsyncIterator[Ask]:
        """Lay the skill into a fresh folder, which goes with the rollout.

        Raises:
            SkillError: The skill breaks the rules of Agent Skills.
        """
        base = scratch_folder("agent")  # of mode 700: it holds the token
        try:
            skills = base / "work" / self.skills
            skills.mkdir(parents=True)
            laid = "" if skill.empty else str(save_skill(evolve(skill, body=harmless(skill.body)), skills))
            about = {"name": skill.name, "description": skill.description, "folder": laid}
            place = _Place(command=self, base=base, skill=about if laid else _NO_SKILL, token=token)
            yield place.ask
        finally:
            await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


_NO_SKILL = {"name": "", "description": "", "folder": ""}


@frozen(kw_only=True)
class _Place:
    """Where one rollout's program runs.

    Attributes:
        base: Holds what the program is told, beside the folder ``work`` in which it runs.
    """

    command: Command
    base: Path
    skill: JsonObject
    token: str

    async def ask(self, request: JsonObject) -> Outcome:
        """Run the program once."""
        told, outcome = self.base / "turn.json", self.base / "outcome.json"
        outcome.unlink(missing_ok=True)
        skills = str(self.base / "work" / self.command.skills)
        whole = {**request, "skill": self.skill, "skills": skills, "outcome": str(outcome)}
        told.write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
        values = {
            "task": request["message"],
            "seed": str(request["seed"]),
            "skills": skills,
            "turn": str(told),
            "outcome": str(outcome),
            "token": self.token,
            "mcp_url": (request["mcp"] or {}).get("url", ""),
            "mcp_config": str(self._mcp_config(request)),
            "model_url": (request["model"] or {}).get("url", ""),
        }
        answer = await self._run(self.command.words.filled(values), told)
        return outcome_in(outcome, agent=self.command.name, answer=answer.strip())

    async def _run(self, command: tuple[str, ...], told: Path) -> str:
        try:
            return await run(
                command,
                folder=self.base / "work",
                environ={TURN_FILE: str(told)},
                name=self.command.name,
                secrets=(self.token,),
            )
        except OSError as error:
            raise ConfigError(
                f"{self.command.name} can't be started: {error}. A message that is too long for a command line is in "
                f"the file that the environment variable {TURN_FILE} names."
            ) from error

    def _mcp_config(self, request: JsonObject) -> Path:
        """Write down the episode's tools as many agents take them, for example ``claude --mcp-config``."""
        file = self.base / "mcp.json"
        if request["mcp"]:
            headers = {"Authorization": f"Bearer {self.token}"}
            server = {"type": "http", "url": request["mcp"]["url"], "headers": headers}
            file.write_text(json.dumps({"mcpServers": {"wer": server}}), "utf-8")
        return file
