"""What a user may set about Trace2Skill."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen
from attrs.validators import ge, in_, le

Mode = Literal["deepen", "create"]
Analysts = Literal["combined", "error", "success"]


@frozen(kw_only=True)
class Options:
    """The table ``[optimizer.trace2skill]``.

    Attributes:
        mode: ``deepen`` refines a skill that somebody wrote; ``create`` takes it for a weak draft, of
            which mergers may rewrite whole sections. Without any base skill, one is always created.
        analysts: Whose patches count: both kinds', or one kind's (the paper's ablation).
        analyst_temperature: Takes the place of ``training.temperature``, which is for policies.
        merger_temperature: Likewise.
        error_turns: How often an error analyst may answer until its cause is verified; 1 is the
            paper's ablation without a loop.
        fan_in: Patches that one call merges into one [B_merge].
        max_edits: The most edits of an analyst's patch.
        max_merged_edits: The most edits of a merged patch; those with the fewest trajectories behind
            them go first.
        max_patches: The most trajectories of a domain that are analysed, evenly over its tasks; 0: all.
        max_words: Of the skill's body; a base that is longer already may not grow.
    """

    mode: Mode = field(default="deepen", validator=in_(("deepen", "create")))
    analysts: Analysts = field(default="combined", validator=in_(("combined", "error", "success")))
    analyst_temperature: float = field(default=0.3, validator=[ge(0.0), le(2.0)])
    merger_temperature: float = field(default=0.3, validator=[ge(0.0), le(2.0)])
    error_turns: int = field(default=3, validator=ge(1))
    fan_in: int = field(default=32, validator=ge(2))
    max_edits: int = field(default=4, validator=ge(1))
    max_merged_edits: int = field(default=16, validator=ge(1))
    max_patches: int = field(default=0, validator=ge(0))
    max_words: int = field(default=900, validator=ge(20))
