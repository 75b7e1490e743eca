"""What the reference left behind, as the BFCL environment exported it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from wer.errors import VerifierError
from wer.records import Json


@frozen(kw_only=True)
class ExpectedTurn:
    """One turn of the reference.

    Attributes:
        state: Public attributes by class.
        calls: 0 in the few turns that the official checker skips.
    """

    state: Mapping[str, Mapping[str, Json]]
    results: tuple[str, ...]
    calls: int


def expected_turns(expect: Json) -> tuple[ExpectedTurn, ...]:
    """Read what the environment's ``expect`` gave.

    Raises:
        VerifierError: It is not from the BFCL environment.
    """
    try:
        turns = tuple(
            ExpectedTurn(state=turn["state"], results=tuple(turn["results"]), calls=turn["calls"])
            for turn in expect["turns"]
        )
    except (TypeError, KeyError) as error:
        raise VerifierError(
            f"there are no reference turns to compare with ({type(error).__name__}: {error}). "
            "This verifier judges tasks of the environment bfcl; choose another for this one."
        ) from error
    if not turns:
        raise VerifierError("the reference has no turns, so nothing can be judged")
    return turns
