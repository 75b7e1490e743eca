"""What a user may set about SKILLER."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge, le


@frozen(kw_only=True)
class Options:
    """The table ``[optimizer.skiller]``; the temperatures are the paper's (appendix E).

    Attributes:
        critic_temperature: Takes the place of ``training.temperature``, which is for policies.
        actor_temperature: Likewise.
        max_edits: The most edits of one update: what keeps it bounded.
        scripts: Whether the actor may write helper scripts (off: an ablation of the paper).
    """

    critic_temperature: float = field(default=0.3, validator=[ge(0.0), le(2.0)])
    actor_temperature: float = field(default=0.3, validator=[ge(0.0), le(2.0)])
    max_edits: int = field(default=4, validator=ge(1))
    scripts: bool = True
