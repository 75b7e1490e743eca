"""The phase's prompts as OpenRLHF reads them: JSON lines of a rendered prompt and a label.

The label carries what the agent needs to find its way back to the state. OpenRLHF hands
labels on as text, so it is JSON within JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from wer.records import RefinementState


def write(
    path: Path, states: Sequence[RefinementState], render: Callable[[RefinementState], str], *, k: int
) -> int:
    """Write a line a state, in the given order.

    Args:
        states: A state that occurs again, to fill the last batch, gets a further group of
            k candidates.
        render: Gives the prompt with the chat template's tokens, as text.

    Returns:
        The number of lines.
    """
    seen: Counter[str] = Counter()
    lines = []
    for state in states:
        label = {"state": state.id, "first": seen[state.id] * k}
        seen[state.id] += 1
        lines.append(json.dumps({"prompt": render(state), "label": json.dumps(label)}))
    part = path.with_name(f"{path.name}.part")
    part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    part.replace(path)
    return len(lines)
