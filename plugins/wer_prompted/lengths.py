"""Which states are too long to be asked about, for models whose tokenizer is out of reach."""

from __future__ import annotations

from collections.abc import Sequence

from wer.contracts import OptimizerSetup
from wer.errors import PromptTooLong
from wer.records import RefinementState
from wer.writing import revision_messages

_CHARACTERS_A_TOKEN = 4


def estimated_tokens(state: RefinementState) -> int:
    """Estimate the length of a state's request, in tokens of four characters each."""
    characters = sum(len(message.content) for message in revision_messages(state))
    return -(-characters // _CHARACTERS_A_TOKEN)


def refusals(states: Sequence[RefinementState], setup: OptimizerSetup) -> dict[str, PromptTooLong]:
    """Find the states to leave out because their prompt is too long, by id, and say how many.

    Raises:
        PromptTooLong: Of a state that the loop did not assemble: its task never fits.
    """
    refused = {}
    for state in states:
        tokens = estimated_tokens(state)
        if tokens <= setup.max_prompt_tokens:
            continue
        refusal = PromptTooLong(
            f"the prompt for task {state.task.id!r} has about {tokens} tokens and the limit is "
            f"{setup.max_prompt_tokens}: WER never truncates evidence. Raise training.max_prompt_tokens if the "
            "writer's context allows it, or leave the task out."
        )
        if state.round == 0:
            raise refusal
        refused[state.id] = refusal
    if refused:
        setup.progress(
            f"{len(refused)} of {len(states)} states are over {setup.max_prompt_tokens:,} prompt tokens "
            "(estimated) and left out"
        )
    return refused
