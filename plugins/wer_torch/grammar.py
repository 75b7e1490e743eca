"""Replies that are JSON of a schema, token by token, through llguidance."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from attrs import define, field, frozen
from llguidance import LLMatcher, LLTokenizer
from llguidance.hf import from_tokenizer

from wer.chat import dumps
from wer.errors import ModelError
from wer.records import JsonObject, content_hash

# One layout, the one that models write most: leaving blanks to the model lets a greedy
# one write them until it is cut, and forced tokens need not be sampled.
_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_ARRAY_KEYS = frozenset({"type", "items", "minItems", "maxItems"})
_KEPT = 32


@define(kw_only=True, eq=False)
class Constraint:
    """Where one reply stands in its schema."""

    _matcher: LLMatcher

    @property
    def over(self) -> bool:
        """Whether the JSON is complete and nothing can follow."""
        return bool(self._matcher.is_stopped())

    def allowed(self) -> torch.Tensor:
        """Ids of the tokens that may follow."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        return torch.from_numpy(np.flatnonzero(np.unpackbits(bits, bitorder="little")))

    def accept(self, token: int) -> None:
        """Go on with an allowed token.

        Raises:
            ValueError: The token is not allowed, or the grammar outgrew its limits.
        """
        if not self._matcher.consume_token(token):
            raise ValueError(f"the grammar of the reply stopped: {self._matcher.get_error()}")

    def forced(self) -> list[int]:
        """Tokens that must follow, already accepted: keys, quotes, the rest of a tool's name."""
        if self.over:
            return []
        tokens = list(self._matcher.compute_ff_tokens())
        for token in tokens:
            self.accept(token)
        return tokens


@frozen(kw_only=True, eq=False)
class Grammars:
    """Compiles schemas for one tokenizer, and keeps the last ones."""

    _tokenizer: LLTokenizer
    _compiled: OrderedDict[str, LLMatcher] = field(factory=OrderedDict)

    @classmethod
    def of(cls, tokenizer: Any, vocabulary: int, end_tokens: frozenset[int]) -> Grammars:
        """Read a fast tokenizer, which takes about a second.

        Args:
            vocabulary: How many logits the model gives.
        """
        return cls(tokenizer=from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=sorted(end_tokens)))

    def constraint(self, schema: JsonObject) -> Constraint:
        """Begin a reply that must be JSON of a schema.

        Raises:
            ModelError: The schema is not one that grammars can express.
        """
        key = content_hash(schema)
        if key not in self._compiled:
            self._compiled[key] = self._compile(schema)
        self._compiled.move_to_end(key)
        while len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        return Constraint(matcher=self._compiled[key].deep_copy())

    def _compile(self, schema: JsonObject) -> LLMatcher:
        try:
            matcher = LLMatcher(self._tokenizer, _grammar(schema))
        except ValueError as error:
            raise ModelError(f"the reply's schema cannot be made a grammar: {error}") from error
        if matcher.is_error():
            raise ModelError(f"the reply's schema cannot be made a grammar: {matcher.get_error()}")
        return matcher


def layout() -> str:
    """Name how replies are laid out, by the grammars of an array and an object; it changes when they do."""
    item = {"type": "object", "properties": {"a": {"type": "integer"}}}
    return content_hash([_grammar({"type": "array", "items": item}), _grammar(item)])


def _grammar(schema: JsonObject) -> str:
    """Write an array an item a line, as models do unasked, and everything else on one line.

    On one line a small model ended its plans too early: 4 of 38 BFCL tasks passed, 8 with lines.
    """
    most = schema.get("maxItems")
    plain = set(schema) <= _ARRAY_KEYS and schema.get("type") == "array" and "items" in schema
    if not plain or most == 0 or not isinstance(schema["items"], Mapping) or "$ref" in dumps(schema):
        return str(LLMatcher.grammar_from_json_schema(dumps(schema), overrides=_SPACING))
    least = schema.get("minItems", 0)
    more = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    nothing = "" if least else '"[]" | '
    item = dumps({**schema["items"], "x-guidance": _SPACING})
    lark = f'start: {nothing}"[\\n  " item (",\\n  " item){more} "\\n]"\nitem: %json {item}\n'
    return str(LLMatcher.grammar_from_lark(lark))
