"""Candidates from the policy: sampled side by side, or recalled from an interrupted run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import torch
from attrs import frozen

from wer.contracts import OptimizerSetup
from wer.errors import OptimizerError, PromptTooLong
from wer.records import Candidate, RefinementState, derive_seed
from wer_grpo.policy import Answer
from wer_grpo.sampling import sample
from wer_grpo.writer import Writer

_SAY_EVERY_S = 20.0


@frozen(kw_only=True)
class Written:
    """One group: the candidates, and the same as the policy's answers."""

    candidates: tuple[Candidate, ...]
    answers: tuple[Answer, ...]


@frozen(kw_only=True)
class Author:
    """Writes candidates for states. Blocking: for the worker's thread.

    Attributes:
        check: Called between steps; raises to stop.
    """

    setup: OptimizerSetup
    writer: Writer
    check: Callable[[], None]

    def refusals(self, states: Sequence[RefinementState]) -> dict[str, PromptTooLong]:
        """Find the states to leave out because their prompt is too long, by id, and say how many.

        Raises:
            PromptTooLong: Of a state that the loop did not assemble: its task never fits.
        """
        refused = {}
        for state in states:
            try:
                self.writer.prompt(state)
            except PromptTooLong as refusal:
                if state.round == 0:
                    raise
                refused[state.id] = refusal
        if refused:
            self.setup.progress(
                f"{len(refused)} of {len(states)} states are over {self.writer.max_prompt_tokens:,} prompt "
                "tokens and left out"
            )
        return refused

    def sample(self, states: Sequence[RefinementState], k: int, seed: int) -> list[Written]:
        """Write k candidates a state, all of them side by side.

        Raises:
            PromptTooLong: Some state does not fit; nothing was sampled.
        """
        prompts = [self.writer.prompt(state) for state in states]
        drawn = self.draw(prompts, [derive_seed(seed, state.id) for state in states], k)
        return [
            Written(
                candidates=tuple(
                    self.writer.candidate(state, index, prompt, each) for index, each in enumerate(group)
                ),
                answers=tuple(group),
            )
            for state, prompt, group in zip(states, prompts, drawn, strict=True)
        ]

    def draw(self, prompts: Sequence[torch.Tensor], seeds: Sequence[int], k: int) -> list[list[Answer]]:
        """Sample k answers to each prompt, all of them side by side."""
        return sample(
            self.writer.policy,
            prompts,
            seeds,
            k=k,
            max_tokens=self.setup.max_response_tokens,
            end_tokens=self.writer.end_tokens,
            greedy=self.setup.temperature <= 0,
            tick=self.ticker(f"writing {len(prompts)} x {k} candidates"),
        )

    def write(
        self, states: Sequence[RefinementState], recorded: Mapping[str, Sequence[Candidate]]
    ) -> list[Written]:
        """Give each state's group: the recorded one if there is any, else a sampled one."""
        missing = [state for state in states if not recorded[state.id]]
        sampled = self.sample(missing, self.setup.k, self.setup.seed) if missing else []
        fresh = {state.id: group for state, group in zip(missing, sampled, strict=True)}
        return [fresh.get(state.id) or self._recall(state, recorded[state.id]) for state in states]

    def ticker(self, line: str) -> Callable[[int], None]:
        """Make a tick that says the line now and then, and stops the work when nobody waits for it."""
        said = 0.0

        def tick(live: int) -> None:
            nonlocal said
            self.check()
            if time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                self.setup.progress(f"{line}, {live} open" if live else line)

        return tick

    def _recall(self, state: RefinementState, group: Sequence[Candidate]) -> Written:
        if not all(candidate.token_ids for candidate in group):
            raise OptimizerError(
                f"the candidates recorded for state {state.id} have no token ids, so another kind of writer wrote "
                "them. Start a new run to train on this state."
            )
        self.check()
        tokens = [torch.tensor(each.token_ids, device=self.writer.policy.device) for each in group]
        answers = self.writer.policy.recall(self.writer.prompt(state), tokens)
        return Written(candidates=tuple(group), answers=answers)
