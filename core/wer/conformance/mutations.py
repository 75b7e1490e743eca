"""References with one thing changed: what a verifier that tells right from wrong should not accept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from wer.records import Json, ToolCall

Turns = tuple[tuple[ToolCall, ...], ...]


@frozen(kw_only=True)
class Mutation:
    """A changed reference.

    Attributes:
        what: For people, such as ``without call 2 (refund)``.
    """

    what: str
    turns: Turns


def mutations(reference: Sequence[Sequence[ToolCall]], seed: int) -> Iterator[Mutation]:
    """One reference with a call dropped, repeated, exchanged with the next, and changed; each once, where it can be."""
    turns: Turns = tuple(map(tuple, reference))
    places = [(turn, place) for turn, calls in enumerate(turns) for place in range(len(calls))]
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    dice.shuffle(places)
    for turn, place in places[:1]:
        call = turns[turn][place]
        yield _changed(turns, turn, place, (), f"without call {place + 1} ({call.name})")
    for turn, place in places[-1:]:
        call = turns[turn][place]
        yield _changed(turns, turn, place, (call, call), f"with call {place + 1} ({call.name}) twice")
    for turn, place in places:
        calls = turns[turn]
        if place + 1 < len(calls) and calls[place] != calls[place + 1]:
            swapped = (*calls[:place], calls[place + 1], calls[place], *calls[place + 2 :])
            named = f"calls {place + 1} and {place + 2} ({calls[place].name}, {calls[place + 1].name})"
            yield Mutation(what=f"with {named} exchanged", turns=(*turns[:turn], swapped, *turns[turn + 1 :]))
            break
    for turn, place in places:
        call = turns[turn][place]
        if call.arguments:
            key = dice.choice(sorted(call.arguments))
            arguments = {**call.arguments, key: _other(call.arguments[key])}
            what = f"with another {key!r} in call {place + 1} ({call.name})"
            yield _changed(turns, turn, place, (evolve(call, arguments=arguments),), what)
            break


def _changed(turns: Turns, turn: int, place: int, calls: tuple[ToolCall, ...], what: str) -> Mutation:
    here = (*turns[turn][:place], *calls, *turns[turn][place + 1 :])
    where = f" of turn {turn + 1}" if len(turns) > 1 else ""
    return Mutation(what=what + where, turns=(*turns[:turn], here, *turns[turn + 1 :]))


def _other(value: Json) -> Json:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return value[:-1] if isinstance(value, list) and value else None
