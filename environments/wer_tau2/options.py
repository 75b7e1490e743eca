"""What a user may set about the environment: ``[environment.tau2]``."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators


@frozen(kw_only=True)
class Tau2Options:
    """The table ``[environment.tau2]``; upstream's settings by default.

    Attributes:
        split: ``paper`` trains on 10, 23 and 23 of the base tasks and tests on the other 40,
            91 and 91. ``official`` is the package's own: 30, 74 and 74 against 20, 40 and 40.
        seed: Decides which tasks the split ``paper`` trains on.
        max_steps: Messages of agent, user and tools together, after which an episode is over.
        max_errors: Failed tool calls of agent and user together, likewise.
        user_temperature: Of the simulated user.
        user_max_tokens: Of one message of the simulated user.
    """

    split: Literal["paper", "official"] = "paper"
    seed: int = 0
    max_steps: int = field(default=200, validator=validators.ge(1))
    max_errors: int = field(default=10, validator=validators.ge(1))
    user_temperature: float = field(default=0.0, validator=validators.ge(0.0))
    user_max_tokens: int = field(default=1024, validator=validators.ge(1))
