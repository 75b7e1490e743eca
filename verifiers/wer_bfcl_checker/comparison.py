"""Where an exported state differs from the reference's, by the equality of the official state check."""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Mapping

from wer.differences import ABSENT, MAX_LINES, differences, members
from wer.records import Json


def state_findings(state: Mapping[str, Json], expected: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """List differences in the attributes that the reference has; what else the state holds is ignored.

    Numbers compare as Python compares them: 1, 1.0 and True are equal, as in the
    official state check.
    """
    found = (
        finding
        for name, attributes in expected.items()
        for attribute, wanted in attributes.items()
        for finding in differences(
            state.get(name, {}).get(attribute, ABSENT),
            wanted,
            f"{name}.{attribute}",
            equal=operator.eq,
            members=_members,
        )
    )
    return list(itertools.islice(found, MAX_LINES))


def _members(value: Json) -> Mapping[str, Json] | None:
    """As for any JSON, and a dictionary whose keys JSON lacks by these keys."""
    if isinstance(value, Mapping) and "$dict" in value:
        return {f"[{json.dumps(key)}]": item for key, item in value["$dict"]}
    return members(value)
