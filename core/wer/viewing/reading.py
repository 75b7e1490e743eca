"""A run that is only looked at: its folder, its configuration, and a store that nothing here can write to."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from sqlalchemy.exc import DatabaseError

from wer import folders
from wer.configuration import RunConfig
from wer.errors import StoreError, WerError
from wer.records import JsonObject, Skill
from wer.store import Store

PAGE = 50
"""Rows of a list that are shown together."""

Query = Mapping[str, str]
"""The parameters of an address, as they came: strings, of any content."""


class NotThere(WerError):
    """What was asked for is not in the run."""


@frozen(kw_only=True)
class Reading:
    """An open run."""

    folder: Path
    config: RunConfig
    store: Store

    def ask(self, question: str, **values: object) -> Sequence[Any]:
        """Rows of the store; see `wer.store.Store.ask`."""
        return self.store.ask(question, **values)

    def one(self, question: str, **values: object) -> Any:
        """The only row of an answer.

        Raises:
            NotThere: There is none.
        """
        found = self.ask(question, **values)
        if not found:
            raise NotThere("this run has no such thing (any more). Go back to its overview.")
        return found[0]

    def about(self) -> JsonObject:
        """What made the run: ``about.toml``; empty when it is damaged."""
        try:
            return tomllib.loads((self.folder / "about.toml").read_text("utf-8"))
        except (OSError, ValueError):
            return {}

    def skill(self, skill_id: str) -> Skill:
        """A skill by its id."""
        return self.store.skill(skill_id)


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """Open a run to look at it.

    Raises:
        WerError: It has no store yet, or one that this WER can't read.
    """
    config = folders.configuration(folder)
    store = Store(folder / "wer.sqlite", read_only=True)
    try:
        yield Reading(folder=folder, config=config, store=store)
    except DatabaseError as error:
        raise StoreError(
            f"cannot read the store of run {folder.name!r}: {error.orig}. Try again if the run is at work; otherwise "
            "it is damaged."
        ) from error
    finally:
        store.close()


def number(query: Query, name: str, default: int = 0) -> int:
    """A whole number of an address, at least 0; what is none counts as the default."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def page(rows: Sequence[JsonObject], *, total: int, offset: int) -> JsonObject:
    """A part of a long list, and how long it is."""
    return {"rows": rows, "total": total, "offset": offset, "limit": PAGE}


def clip(text: str, limit: int) -> JsonObject:
    """A text as far as it is shown, and how many more characters there are."""
    return {"text": text[:limit], "more": max(0, len(text) - limit)}


def line(text: str, limit: int = 160) -> str:
    """A text as one line of a list."""
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def finite(value: object) -> float | None:
    """A figure as JSON has it: infinities and what is no number are unknown."""
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return float(f"{value:.6g}")
    return None


def encoded(answer: JsonObject) -> bytes:
    """An answer's bytes; a half character of hostile text becomes a question mark."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-8", "replace")
