"""The table ``[executor_options]`` of any agent of the user's own, and how the addresses and keys in it are read."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from attrs import frozen

from wer.errors import ConfigError


@frozen(kw_only=True)
class Options:
    """What all agents have in common.

    Attributes:
        reset: Puts back what the agent's own tools work on, before each rollout: a function, ``agent.py:reset``,
            which gets the task if it takes one, or ``command: ./reset.sh``.
        isolation: What isolates rollouts of an agent with tools of its own from each other, in your words, for the
            report. Empty: nothing does, and they run one at a time.
        version: Of what can't be seen from here, such as a prompt that the agent fetches or the model that it asks.
            Another version is another agent.
    """

    reset: str = ""
    isolation: str = ""
    version: str = ""


@frozen(kw_only=True)
class OutsideOptions(Options):
    """What programs and endpoints have beside that.

    Attributes:
        upstream: Your model server, up to and with ``/v1``: then the agent is told the address of a
            proxy of ours in front of it, which records the agent's steps and what they cost.
        upstream_key: Name of the environment variable that holds the server's key; empty is no key.
    """

    upstream: str = ""
    upstream_key: str = ""


def check_url(url: str, setting: str, example: str) -> None:
    """Refuse what is no address, and keys in it: settings are stored with the run.

    Raises:
        ConfigError: With the remedy.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine:
        raise ConfigError(f"{setting} is {url!r}, which is no address. Write it like {example}.")
    if parts.username or parts.password:
        raise ConfigError(
            f"{setting} has a user or a password in it, and settings are stored. Put it into an environment variable, "
            "and name that in executor_options.headers or executor_options.upstream_key."
        )


def secret(variable: str, setting: str) -> str:
    """The value of an environment variable that the user named; empty for no name.

    Raises:
        ConfigError: It isn't set.
    """
    if not variable:
        return ""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(
            f"executor_options.{setting} names the environment variable {variable!r}, which is not set. Set it; the "
            "key itself doesn't belong into the settings."
        )
    return value
