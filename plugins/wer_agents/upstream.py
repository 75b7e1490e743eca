"""The user's model server, which an agent outside of WER reaches through the recording proxy."""

from __future__ import annotations

from urllib.parse import urlsplit

import aiohttp
from attrs import field, frozen

from wer_agents.options import OutsideOptions, check_url, secret

_TIMEOUT = aiohttp.ClientTimeout(total=600.0, sock_connect=20.0)


@frozen(kw_only=True)
class Upstream:
    """Where it is.

    Attributes:
        url: Base address, up to and with ``/v1``.
        key: Sent as bearer token when not empty; never printed.
    """

    url: str
    key: str = field(default="", repr=False)

    def client(self) -> aiohttp.ClientSession:
        """Connections to it; the environment's proxies are not for a server of this machine."""
        here = urlsplit(self.url).hostname in {"127.0.0.1", "localhost", "::1"}
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=_TIMEOUT, trust_env=not here, headers=headers
        )

    def hidden(self, words: object) -> str:
        """Some words of it, without the key that it may repeat."""
        return str(words).replace(self.key, "***") if self.key else str(words)


def upstream_of(options: OutsideOptions) -> Upstream | None:
    """The model server that the user named, or None.

    Raises:
        ConfigError: Its address is none, or its key isn't there.
    """
    if not options.upstream:
        return None
    check_url(options.upstream, "executor_options.upstream", "https://api.openai.com/v1")
    return Upstream(url=options.upstream.rstrip("/"), key=secret(options.upstream_key, "upstream_key"))
