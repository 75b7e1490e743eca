"""Keys and values of finished rows, so that a prompt is read only from where it is new."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from attrs import define, field, frozen
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


@frozen(kw_only=True, eq=False)
class Known:
    """Tokens whose keys and values are at hand.

    Attributes:
        tokens: Shape ``(T,)``.
        block: Keys and values, ``(layers, 2, Hkv, capacity, D)`` with ``capacity >= T``.
    """

    tokens: Tokens
    block: torch.Tensor

    @property
    def bytes(self) -> int:
        """Memory of its own tokens' keys and values, which is what the cache's cap counts."""
        layers, two, heads, _, width = self.block.shape
        return layers * two * heads * width * self.block.element_size() * len(self.tokens)


def shared(left: Tokens, right: Tokens) -> int:
    """Count the tokens with which both begin."""
    length = min(len(left), len(right))
    differing = np.flatnonzero(left[:length] != right[:length])
    return int(differing[0]) if len(differing) else length


@define(kw_only=True, eq=False)
class PrefixCache:
    """The last rows that were finished, least recently used first.

    Attributes:
        limit: Bytes of keys and values, counted by tokens.
    """

    limit: int
    _rows: list[Known] = field(factory=list)

    def find(self, tokens: Tokens, live: Sequence[Known]) -> tuple[Known | None, int]:
        """Find who shares the longest beginning with some tokens, and how many of them.

        Args:
            live: Rows at work, which can be copied from as well.
        """
        best, length = None, 0
        for known in (*live, *self._rows):
            common = shared(known.tokens, tokens)
            if common > length:
                best, length = known, common
        if best in self._rows:
            self._rows.remove(best)
            self._rows.append(best)
        return best, length

    def keep(self, new: Known) -> None:
        """Remember a row; what it contains is dropped, and so are the oldest over the limit."""
        if any(shared(known.tokens, new.tokens) == len(new.tokens) for known in self._rows):
            return
        self._rows = [known for known in self._rows if shared(known.tokens, new.tokens) < len(known.tokens)]
        self._rows.append(new)
        while self._rows and sum(known.bytes for known in self._rows) > self.limit:
            del self._rows[0]
