"""How long an episode may get: the orchestrator's count of messages and errors, hop by hop."""

from __future__ import annotations

from attrs import define

from wer.records import End

ALIKE = 3
"""So many equal messages in a row are a loop."""


@define(kw_only=True)
class Hops:
    """The count of one episode.

    A hop is one message: the agent's, the user's, or all results of one message's calls.

    Attributes:
        steps: Hops so far.
        errors: Failed tool calls so far, of agent and user together.
    """

    max_steps: int
    max_errors: int
    steps: int = 0
    errors: int = 0

    def message(self, *, with_calls: bool) -> End | None:
        """Count a message of the agent or the user; calls always get their results first."""
        self.steps += 1
        return None if with_calls else self._limit()

    def results(self, failed: int) -> End | None:
        """Count the results of a message's calls.

        Args:
            failed: How many of them are errors.
        """
        self.steps += 1
        self.errors += failed
        return self._limit()

    def _limit(self) -> End | None:
        if self.errors >= self.max_errors:
            return End(by="environment", why="error_limit")
        if self.steps >= self.max_steps:
            return End(by="environment", why="step_limit")
        return None


def blamed(end: End, *, agent: list[str], user: list[str]) -> End:
    """Say who went round in circles, if the episode ran into the limit of steps because one side did.

    Args:
        agent: What the agent said so far, in order.
        user: What the user said so far, likewise.
    """
    if end.why != "step_limit" or _circles(agent) == _circles(user):
        return end
    return End(by="agent" if _circles(agent) else "user", why="loop")


def _circles(said: list[str]) -> bool:
    last = said[-ALIKE:]
    return len(last) == ALIKE and len(set(last)) == 1
