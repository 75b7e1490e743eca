"""What ``openai/NAME[@URL]`` means: OpenAI's own API, or any server that speaks its language."""

from __future__ import annotations

import os

from wer.errors import ConfigError, ModelError
from wer.serving.client import Dialect, ServedModel

OPENAI_URL = "https://api.openai.com/v1"

_ANY = Dialect(provider="openai")
_OFFICIAL = Dialect(provider="openai", limit="max_completion_tokens", top_k=False)


def named(rest: str) -> ServedModel:
    """Make the model of ``name`` or ``name@url``. The price is not known here.

    With a URL the key is ``WER_API_KEY``, if there is one: OpenAI's own key is
    never shown to another server.

    Raises:
        ConfigError: The name is empty, or the URL is not one.
        ModelError: OpenAI's own API is meant and no key is set.
    """
    name, at, url = rest.partition("@")
    if not name:
        raise ConfigError(f"a model needs a name, got 'openai/{rest}'. Write openai/NAME or openai/NAME@URL.")
    if at and not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is not an address. Write openai/{name}@http://HOST:PORT/v1.")
    key = os.environ.get("WER_API_KEY", "")
    if not at:
        key = os.environ.get("OPENAI_API_KEY", "") or key
        if not key:
            raise ModelError(
                f"no API key for openai/{name}. Set OPENAI_API_KEY (or WER_API_KEY), or name a server "
                f"that needs none: openai/{name}@http://127.0.0.1:8000/v1."
            )
    url = (url or OPENAI_URL).rstrip("/")
    return ServedModel(name=name, url=url, key=key.strip(), dialect=_OFFICIAL if url == OPENAI_URL else _ANY)
