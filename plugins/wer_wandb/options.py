"""What a user may set about Weights & Biases."""

from __future__ import annotations

from typing import Literal

from attrs import frozen


@frozen(kw_only=True)
class WandbOptions:
    """``[tracking.wandb]``. The API key is Weights & Biases' own affair: ``wandb login``, or its variable.

    Attributes:
        project: Where a new run goes.
        entity: Team or user; empty is the account's own default.
        mode: ``online`` or ``offline``; empty is what ``WANDB_MODE`` says.
        prefix: Before every name in a run that was active already; a run of WER's own
            needs none.
    """

    project: str = "wer"
    entity: str = ""
    mode: Literal["", "online", "offline"] = ""
    prefix: str = "wer"
