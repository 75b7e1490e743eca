"""The frozen agent: a loop of replies, calls and observations around one model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import define, field, frozen

from wer.contracts import Model, Session
from wer.errors import ConfigError, PromptTooLong
from wer.records import (
    Answer,
    End,
    JsonObject,
    Message,
    Observation,
    Reply,
    Skill,
    Step,
    Task,
    ToolSpec,
    Trajectory,
    Turn,
    Usage,
    derive_seed,
)
from wer_toolagent.modes import MODES, Mode, Move, prompt_version
from wer_toolagent.options import ToolAgentOptions
from wer_toolagent.prompts import system_prompt

_OUT_OF_CONTEXT = Move(text="", ends=True, say="")
_NO_ROOM = End(by="agent", why="out_of_context")


@frozen(kw_only=True)
class ToolAgent:
    """A `wer.contracts.Executor`. Holds no state of a rollout, so many may run at once."""

    model: Model
    options: ToolAgentOptions

    @property
    def identity(self) -> JsonObject:
        """Everything but the skill that shapes a rollout, the words and schemas of the mode included."""
        return {
            "executor": "toolagent",
            "mode": self.options.mode,
            "prompt": prompt_version(self._mode),
            "temperature": self.options.temperature,
            "top_k": self.options.top_k,
            "top_p": self.options.top_p,
            "max_tokens": self.options.max_tokens,
            "model": dict(self.model.identity),
        }

    @property
    def _mode(self) -> Mode:
        return MODES[self.options.mode]

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Run one episode to its end; the environment alone limits its steps.

        A malformed reply is kept verbatim and ends the turn. So does an agent whose own
        history no longer fits the model's context. A skill that leaves no room for even
        the first prompt fails: the agent is silent in all turns, and the end says
        ``out_of_context``.

        Raises:
            ConfigError: The skill has scripts, or a tool's name is one that the mode needs.
            PromptTooLong: Even the first prompt does not fit, and there is no skill to blame.
            InfrastructureError: The model's or the sandbox's own failure.
        """
        if skill.scripts:
            raise ConfigError(
                f"skill {skill.name!r} has scripts ({', '.join(skill.scripts)}), which the executor "
                "'toolagent' cannot run. Use a skill without scripts, or another executor."
            )
        mode = self._mode
        chat = _Chat(
            agent=self,
            mode=mode,
            tools=task.tools if mode.native else (),
            schema=mode.schema(task.tools),
            seed=seed,
            skilled=not skill.empty,
        )
        began = time.monotonic()
        system = system_prompt(mode.instructions, mode.documentation(task.tools), task.context, skill)
        if system:
            chat.history.append(Message(role="system", content=system))
        at: Turn | End = await session.begin()
        messages: list[str] = []
        while isinstance(at, Turn):
            messages.append(at.message)
            at = await chat.turn(at, session)
        return Trajectory(
            messages=tuple(messages),
            steps=tuple(chat.steps),
            end=_NO_ROOM if chat.mute else at,
            seed=seed,
            usage=chat.usage,
            wall_s=time.monotonic() - began,
        )


@define(kw_only=True)
class _Chat:
    """One rollout's conversation so far.

    Attributes:
        skilled: Whether the skill may be why the first prompt does not fit.
        mute: It did not, so the model is not asked again.
    """

    agent: ToolAgent
    mode: Mode
    tools: Sequence[ToolSpec]
    schema: JsonObject | None
    seed: int
    skilled: bool
    mute: bool = False
    history: list[Message] = field(factory=list)
    steps: list[Step] = field(factory=list)
    usage: Usage = field(factory=Usage)
    _results: tuple[Observation, ...] = ()

    async def turn(self, turn: Turn, session: Session) -> Turn | End:
        """Act until the agent or the environment ends the turn."""
        self.history.append(self.mode.ask(turn.message, self._results))
        self._results = ()
        while True:
            move = await self._move()
            answer = await session.call(move.calls) if move.calls else Answer(observations=())
            self.steps.append(
                Step(turn=turn.index, text=move.text, calls=move.calls, observations=answer.observations)
            )
            if answer.end is not None:
                return answer.end
            if move.ends:
                self._results = answer.observations
                return await session.say(move.say)
            self.history.extend(self.mode.results(move.calls, answer.observations))

    async def _move(self) -> Move:
        """Ask the model once and read its reply."""
        if self.mute:
            return _OUT_OF_CONTEXT
        sampling = self.agent.options.sampling(
            derive_seed("toolagent", self.seed, len(self.steps)), self.schema
        )
        try:
            reply: Reply = await self.agent.model.complete(tuple(self.history), self.tools, sampling)
        except PromptTooLong:
            if not self.steps and not self.skilled:
                raise
            self.mute = not self.steps
            return _OUT_OF_CONTEXT
        self.usage = self.usage + reply.usage
        self.history.append(self.mode.remember(reply))
        return self.mode.read(reply)
