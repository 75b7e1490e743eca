"""What a user may set about GEPA."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge


@frozen(kw_only=True)
class Options:
    """The table ``[optimizer.gepa]``; the rest is as the gepa package has it by default.

    Attributes:
        minibatch: Tasks that one reflection sees.
        trials: Rollouts behind one score of a task; GEPA's own is one.
        diagnostics: Whether reflection reads what the verifier found, beside the outcome. It may quote
            what the reference reached: see ``leak`` for what then follows.
    """

    minibatch: int = field(default=3, validator=ge(1))
    trials: int = field(default=1, validator=ge(1))
    diagnostics: bool = True
