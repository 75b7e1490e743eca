"""One request on its way through the engine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import torch
from attrs import frozen

from wer.errors import ModelError
from wer.records import Sampling
from wer_torch.grammar import Constraint
from wer_torch.prefixes import Known, Tokens


@frozen(kw_only=True)
class Completion:
    """What was written.

    Attributes:
        tokens: Without the token that ended it.
        finish: ``stop`` or ``length``.
        cached: Tokens of the prompt that did not have to be read.
    """

    tokens: tuple[int, ...]
    finish: str
    cached: int


class Row:
    """A prompt, what was written so far, and how much of both the model has read.

    Attributes:
        read: Tokens whose keys and values are in the block.
        block: Keys and values, ``(layers, 2, Hkv, capacity, D)``, once the row has begun.
        dice: The row's own random numbers.
    """

    block: torch.Tensor

    def __init__(
        self, *, prompt: Sequence[int], most: int, sampling: Sampling, constraint: Constraint | None
    ) -> None:
        self.prompt_tokens: Tokens = np.array(prompt, dtype=np.int64)
        self.sampling = sampling
        self.constraint = constraint
        self.future: Future[Completion] = Future()
        self.read = 0
        self.dice = torch.Generator().manual_seed(sampling.seed)
        self._tokens = list(prompt)
        self._most = most
        self._cached = 0
        self._finish = "stop"

    @property
    def capacity(self) -> int:
        """Tokens that the row may ever have."""
        return len(self.prompt_tokens) + self._most

    @property
    def reading(self) -> bool:
        """Whether some of its tokens must still be read before the next one can be chosen."""
        return self.read < len(self._tokens)

    @property
    def known(self) -> Known:
        """What other rows can copy."""
        return Known(tokens=np.array(self._tokens[: self.read], dtype=np.int64), block=self.block)

    def begin(self, block: torch.Tensor, cached: int) -> None:
        """Take a place: `cached` tokens of the prompt are in the block already."""
        self.block = block
        self.read = self._cached = cached
        if self.constraint is not None:
            self._tokens += self.constraint.forced()[: self._most]

    def pending(self, most: int) -> list[int]:
        """The next tokens to read."""
        return self._tokens[self.read : self.read + most]

    def write(self, token: int, ends: frozenset[int]) -> bool:
        """Append a chosen token and those that it forces; say whether the reply is over."""
        if token in ends:
            return True
        new = [token]
        if self.constraint is not None:
            self.constraint.accept(token)
            new += self.constraint.forced()
        room = self.capacity - len(self._tokens)
        self._tokens += new[:room]
        if len(new) <= room and self.constraint is not None and self.constraint.over:
            return True
        if len(new) >= room:
            self._finish = "length"
            return True
        return False

    def finish(self) -> None:
        """Hand the reply over, unless nobody waits any more."""
        written = tuple(self._tokens[len(self.prompt_tokens) :])
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(Completion(tokens=written, finish=self._finish, cached=self._cached))

    def fail(self, why: str) -> None:
        """Tell who waits that there will be no reply."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(ModelError(why))
