"""Labels that tell whose a container is, so that a later run can clean up after a dead one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wer.sandboxing.owners import Owner

if TYPE_CHECKING:
    from docker import DockerClient

MANAGED = "wer.managed"
_DEADLINE = "wer.deadline"
_DEADLINE_S = 14 * 24 * 3600
"""For owners that can't be looked up, such as one in another pid namespace."""

_WORDS = {"wer.boot": "boot", "wer.pidspace": "space", "wer.pid": "pid", "wer.pidstart": "start"}


def mine() -> dict[str, str]:
    """Labels for a container of this process."""
    me = Owner.me().write()
    owner = {label: me[word] for label, word in _WORDS.items()}
    return {MANAGED: "1", _DEADLINE: str(int(time.time()) + _DEADLINE_S), **owner}


def abandoned(labels: Mapping[str, str]) -> str | None:
    """Say why a container may be removed; None when its owner may still need it."""
    owner = Owner.read({word: labels.get(label, "") for label, word in _WORDS.items()})
    if owner.dead:
        return f"of process {owner.pid}, which has ended"
    if not owner.alive and time.time() > float(labels.get(_DEADLINE, "inf")):
        return "past its deadline"
    return None


def reap(client: DockerClient) -> Sequence[str]:
    """Remove the containers of dead owners; return a line for each."""
    from docker.errors import NotFound

    from wer_docker.containers import remove

    reaped = []
    for container in client.containers.list(all=True, filters={"label": f"{MANAGED}=1"}, ignore_removed=True):
        why = abandoned(container.labels)
        if why is not None:
            with contextlib.suppress(NotFound):
                remove(container)
            reaped.append(f"container {container.short_id} {why}")
    return reaped
