"""One episode of tau2, by the rules of the package's orchestrator, with the user's model on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from wer.arguments import objection
from wer.contracts import Episode
from wer.records import (
    Answer,
    End,
    Evidence,
    Json,
    JsonObject,
    Observation,
    Step,
    ToolCall,
    Turn,
    TurnEvidence,
)
from wer_tau2.hops import Hops, blamed
from wer_tau2.user import Said, SimulatedUser


@define(kw_only=True)
class Tau2Session:
    """Agent and user take turns; both act on one world, and either can end the episode.

    Attributes:
        reset: What puts the world in place.
        assertions: What the task asserts of the end; asked for once the episode is over.
        greeting: What the agent has said before its first turn.
        stops: Words of the user that end the episode, by what they mean.
    """

    episode: Episode
    user: SimulatedUser
    hops: Hops
    reset: JsonObject
    assertions: Sequence[Json]
    greeting: str
    stops: Mapping[str, str]
    _turns: list[TurnEvidence] = field(factory=list, init=False)
    _by_user: list[Step] = field(factory=list, init=False)
    _results: list[str] = field(factory=list, init=False)
    _messages: list[str] = field(factory=list, init=False)
    _open: bool = field(default=False, init=False)
    _end: End | None = field(default=None, init=False)

    async def begin(self) -> Turn | End:
        """Put the task's databases in place, greet the user, and take what it asks for."""
        await self.episode.request("reset", self.reset)
        return await self._answered(self.greeting)

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one message's calls. The limits are looked at when all of them have their results."""
        self._require_open()
        if not calls:
            raise ValueError("a message without calls is said, not called")
        self.hops.message(with_calls=True)
        observations = await self._observe(calls, "assistant")
        self._results += [observation.text for observation in observations]
        end = self.hops.results(sum(not observation.ok for observation in observations))
        return Answer(observations=observations, end=end and self._over(end))

    async def say(self, text: str) -> Turn | End:
        """Tell the user something. Nothing is no answer: it ends the episode, and by the agent's fault."""
        self._require_open()
        self._close_turn(text)
        if not text.strip():
            return self._over(End(by="agent", why="empty_message"))
        end = self.hops.message(with_calls=False)
        return self._over(end) if end else await self._answered(text)

    async def evidence(self) -> Evidence:
        """Export the databases' hashes and the assertions' outcomes; an agent that left has ended it."""
        if self._open:
            self._close_turn("")
        end = self._end or End(by="agent", why="stopped")
        state = await self.episode.request("export", {"assertions": self.assertions})
        *before, last = self._turns or [TurnEvidence(state=None)]
        final = TurnEvidence(state=state, results=last.results, calls=last.calls, said=last.said)
        return Evidence(turns=(*before, final), end=end, user=tuple(self._by_user))

    async def close(self) -> None:
        """Kill the child with its databases."""
        await self.episode.close()

    async def _answered(self, text: str) -> Turn | End:
        """Have the user's answer: it may use tools of its own first, ask for more, or end the episode."""
        self.user.hear(text)
        while True:
            said = await self.user.speak()
            if said.fault is not None:
                return self._over(End(by="user", why=said.fault))
            limit = self.hops.message(with_calls=bool(said.calls))
            if said.calls:
                limit = await self._acted(said)
                if limit is None:
                    continue
                return self._over(limit)
            self._messages.append(said.text)
            stop = said.stop(self.stops)
            if limit is not None or stop is not None:
                self._note(said.text)
                return self._over(limit or End(by="user", why=self._why(stop)))
            self._open = True
            return Turn(message=said.text, index=len(self._turns))

    async def _acted(self, said: Said) -> End | None:
        """Run the user's own calls; the agent learns of them only what the user tells."""
        observations = await self._observe(said.calls, "user")
        self._note(said.text, said.calls, observations)
        self.user.see(said.calls, observations)
        return self.hops.results(sum(not observation.ok for observation in observations))

    def _why(self, stop: str | None) -> str:
        """A user that ends the episode before the agent could do anything did so too early."""
        return str(stop) if self._turns else "premature_stop"

    async def _observe(self, calls: Sequence[ToolCall], requestor: str) -> tuple[Observation, ...]:
        return tuple([await self._run(call, requestor) for call in calls])

    async def _run(self, call: ToolCall, requestor: str) -> Observation:
        refused = objection(call)
        if refused is not None:
            return Observation(text=f"Error: {refused}", ok=False)
        params = {"name": call.name, "arguments": call.arguments, "requestor": requestor}
        answer = await self.episode.request("call", params)
        return Observation(text=answer["text"], ok=answer["ok"])

    def _note(
        self, text: str, calls: tuple[ToolCall, ...] = (), observations: tuple[Observation, ...] = ()
    ) -> None:
        self._by_user.append(Step(turn=len(self._turns), text=text, calls=calls, observations=observations))

    def _close_turn(self, said: str) -> None:
        results = tuple(self._results)
        self._turns.append(TurnEvidence(state=None, results=results, calls=len(results), said=said))
        self._results, self._open = [], False

    def _over(self, end: End) -> End:
        if self._open:
            self._close_turn("")
        self._end = blamed(end, agent=[turn.said for turn in self._turns], user=self._messages)
        return self._end

    def _require_open(self) -> None:
        if not self._open:
            raise ValueError("no turn is open: the episode hasn't begun, or it is over")
