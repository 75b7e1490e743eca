"""What must be set before torch is imported for the first time."""

from __future__ import annotations

import os


def sleep_rather_than_spin() -> None:
    """Let idle OpenMP threads sleep, unless the user has chosen otherwise.

    Spinning threads wait for one another at every small operation. When anything else
    uses the machine's cores, that made a step ten times slower. OpenMP reads the
    variable when torch is imported; later it changes nothing.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
