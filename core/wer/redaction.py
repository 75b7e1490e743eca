"""Keeps secrets out of what is written and shown: configurations, messages, and services outside the run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from wer.records import Json

HIDDEN = "(hidden)"

_NAME = re.compile(
    r"(^|[_-])(api_?keys?|keys?|secrets?|passw(or)?d|pass|token|auth|authorization|credentials?|cookie)$",
    re.IGNORECASE,
)
_NAME_OF_VARIABLE = re.compile(r"[A-Z]+(_[A-Z0-9]+)+")
"""The name of an environment variable, as settings have it in the place of a secret."""
_CREDENTIAL = re.compile(
    r"(^|[_-])(api_?keys?|secrets?|secret_key|passw(or)?d|(access|auth|bearer|api)_?token|authorization|credentials?)$",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSW(OR)?D|CREDENTIALS?)S?$", re.IGNORECASE)
_SHORTEST = 8
"""Characters of a secret: a shorter value of such a variable may be a word of any text."""

_LOGIN = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'\"]+@")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")


def redacted(value: Json) -> Json:
    """Give a copy in which nothing that looks like a secret is left.

    What stands under a name like ``api_key``, ``token`` or ``Authorization`` is hidden, and
    so are the user, the query and the fragment of every URL, in keys as in values.
    """
    if isinstance(value, str):
        return _URL.sub(lambda found: _bare(found[0]), value)
    if isinstance(value, Mapping):
        return {
            redacted(key): HIDDEN if part and _NAME.search(key) else redacted(part)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [redacted(part) for part in value]
    return value


def secrets(value: Json, where: str = "") -> Iterator[tuple[str, str]]:
    """Find what must not be written into a run folder: (place, what is wrong with it), never the secret itself.

    Args:
        value: A configuration, or a part of it.
        where: The part's place, as in ``executor_options``.
    """
    if isinstance(value, str):
        if any(_telling(url) for url in _URL.findall(value)):
            yield where, "an address with a password or a key in it"
    elif isinstance(value, Mapping):
        for key, part in value.items():
            place = f"{where}.{redacted(key)}" if where else str(redacted(key))
            if (
                isinstance(part, str)
                and part
                and _CREDENTIAL.search(key)
                and not _NAME_OF_VARIABLE.fullmatch(part)
            ):
                yield place, "a secret by its name"
            yield from secrets(key, place)
            yield from secrets(part, place)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from secrets(part, where)


def hidden(text: str) -> str:
    """Take out of a message what the environment holds under a secret's name, and who logs in at an address.

    A service may repeat a key in its refusal, and a proxy's password stands in its address.
    """
    for name, secret in os.environ.items():
        if len(secret) >= _SHORTEST and _VARIABLE.search(name):
            text = text.replace(secret, HIDDEN)
    return _LOGIN.sub(rf"\1{HIDDEN}@", text)


def _telling(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "@" in url
    return "@" in parts.netloc or any(_NAME.search(key) for key, _ in parse_qsl(parts.query))


def _bare(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket of an address is missing: nothing of it can be trusted
        return HIDDEN
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
