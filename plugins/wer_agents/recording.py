"""What an agent did in one rollout, put together from what passes by: its model's replies and its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve, field

from wer.chat import dumps, text_of
from wer.records import Json, Observation, Reply, Skill, Step, ToolCall, Usage


@define(kw_only=True, eq=False)
class Record:
    """Steps in the order in which they happened.

    Attributes:
        skill: What the agent was given.
        own: Whether the tools are the agent's own: then its calls are read off its model's
            replies, and what they gave and which turn it is off its model's next request.
        turns: What the task's user says, where it is known beforehand.
        turn: Index of the user turn that is being answered.
        usage: Of the model calls that passed by.
        untold: Whether a reply came without its usage.
        asked: Whether a request to its model has passed by, so that `shown` means something.
        shown: Whether its model was shown the skill's body.
    """

    skill: Skill
    own: bool
    turns: Sequence[str] = ()
    turn: int = 0
    usage: Usage = field(factory=Usage)
    untold: bool = False
    asked: bool = False
    shown: bool = False
    _steps: list[Step] = field(factory=list)
    _said: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that is known by now."""
        return tuple(self._steps)

    def requested(self, messages: Sequence[Json]) -> None:
        """A request to the agent's model passed by."""
        self.asked = True
        heard = [message for message in messages if isinstance(message, Mapping)]
        if not self.shown:
            self.shown = shows(self.skill, [text_of(message) for message in heard])
        if self.own:
            given = {
                str(message["tool_call_id"]): text_of(message)
                for message in heard
                if message.get("tool_call_id")
            }
            self._steps = [_observed(step, given) for step in self._steps]
            self._come_to([text_of(each) for each in heard if each.get("role") == "user"])

    def replied(self, reply: Reply) -> None:
        """The agent's model answered."""
        self.usage += reply.usage
        self.untold |= not (reply.usage.prompt_tokens or reply.usage.completion_tokens)
        self._flush()
        if self.own and reply.calls:
            self._add(reply.text, reply.calls)
        else:
            self._said = "\n".join(filter(None, [reply.text, *reply.malformed]))

    def called(self, call: ToolCall, observations: tuple[Observation, ...]) -> None:
        """The agent called a tool of the episode."""
        said, self._said = self._said, ""
        self._add(said, (call,), observations)

    def answered(self, text: str) -> None:
        """The agent ended its turn."""
        if self._said.strip() == text.strip():
            self._said = ""
        self._flush()
        self._add(text)

    def _come_to(self, said: Sequence[str]) -> None:
        """Tell which turn it is, by what the model is told that the user said."""
        turn = 0
        for text in said:
            if turn + 1 < len(self.turns) and text == self.turns[turn + 1]:
                turn += 1
        if turn > self.turn:
            self._flush()
            self.turn = turn

    def _flush(self) -> None:
        """Keep what the model said though no call came of it."""
        said, self._said = self._said, ""
        if said:
            self._add(said)

    def _add(
        self, text: str, calls: tuple[ToolCall, ...] = (), observations: tuple[Observation, ...] = ()
    ) -> None:
        self._steps.append(Step(turn=self.turn, text=text, calls=calls, observations=observations))


def shows(skill: Skill, texts: Sequence[str]) -> bool:
    """Whether one of the texts holds every line of a skill's body, as it is or escaped in JSON.

    Line by line, because tools that read files number the lines.
    """
    lines = [line.strip() for line in skill.body.splitlines() if line.strip()]
    return bool(lines) and any(
        all(line in text or dumps(line)[1:-1] in text for line in lines) for text in texts
    )


def _observed(step: Step, given: Mapping[str, str]) -> Step:
    """Fill in what a step's calls gave, as far as it is known without a gap."""
    observations = list(step.observations)
    for call in step.calls[len(observations) :]:
        if not call.id or call.id not in given:
            break
        observations.append(Observation(text=given[call.id]))
    return evolve(step, observations=tuple(observations))
