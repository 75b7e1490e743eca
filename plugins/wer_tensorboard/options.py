"""What a user may set about TensorBoard."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class TensorBoardOptions:
    """``[tracking.tensorboard]``.

    Attributes:
        folder: Where event files go; empty is ``tensorboard`` in the run's folder, and a
            run gets a folder of its own name in any other.
    """

    folder: str = ""
