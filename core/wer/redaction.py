"""Takes secrets out of a configuration before it is shown to a service outside the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from wer.records import Json

HIDDEN = "(hidden)"

_NAME = re.compile(
    r"(^|[_-])(api_?keys?|keys?|secrets?|passw(or)?d|pass|token|auth|authorization|credentials?|cookie)$",
    re.IGNORECASE,
)
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


def _bare(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket of an address is missing: nothing of it can be trusted
        return HIDDEN
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
