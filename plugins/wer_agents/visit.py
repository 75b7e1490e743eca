"""One rollout as a program outside of WER meets it: the episode behind a token."""

from __future__ import annotations

import secrets

from attrs import define, field

from wer.records import Skill, Task
from wer_agents.episode import Episode


@define(kw_only=True, eq=False)
class Visit(Episode):
    """What a token opens, until the rollout is over.

    Attributes:
        token: Shown by whoever calls a tool of the episode or the model behind the proxy.
        loaded: Whether the agent read the skill through us.
    """

    task: Task
    token: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    loaded: bool = False

    @property
    def skill(self) -> Skill:
        """What the agent was given."""
        return self.record.skill
