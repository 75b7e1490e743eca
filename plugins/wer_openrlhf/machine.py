"""What OpenRLHF's Python, this machine's GPUs and the Ray cluster offer, as far as a probe can tell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from wer.errors import ConfigError
from wer_openrlhf.launching import environment

_PROBE = Path(__file__).with_name("probe.py")
_TIMEOUT_S = 180.0


@frozen(kw_only=True)
class Cluster:
    """A running Ray.

    Attributes:
        gpus: Of each live node, by address and place, as the nodes claim them.
        free: GPUs that nobody holds now.
        here: This machine's address in it.
    """

    gpus: tuple[tuple[str, int], ...]
    free: int
    here: str


@frozen(kw_only=True)
class Machine:
    """What was found.

    Attributes:
        versions: Of the installed packages, by name.
        gpus: Memory of this machine's GPUs, in bytes.
        cluster: None when none was asked for, or none answered.
        trouble: Why no cluster answered, or "".
        running: Address of a Ray that runs here, when no cluster was asked for.
    """

    versions: Mapping[str, str] = field(factory=dict)
    gpus: tuple[int, ...] = ()
    cluster: Cluster | None = None
    trouble: str = ""
    running: str = ""


async def look(python: str, address: str) -> Machine:
    """Ask OpenRLHF's Python; takes some seconds, and is ended when nobody waits for it any more.

    Args:
        address: Of the Ray cluster to join; empty for none.

    Raises:
        ConfigError: That Python doesn't start, or doesn't answer.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, str(_PROBE), *filter(None, [address])),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment({}),
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_told(python)} does not start: {error}. {_REMEDY}") from error
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            output, words = (text.decode("utf-8", "replace") for text in await process.communicate())
    except TimeoutError as error:
        joining = f" while it asked the Ray cluster at {address}" if address else ""
        raise ConfigError(
            f"{_told(python)} gave no answer in {_TIMEOUT_S:.0f} s{joining}. {_REMEDY}"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = (words.strip().splitlines() or ["it said nothing"])[-1]
        raise ConfigError(f"{_told(python)} does not answer: {last}. {_REMEDY}")
    try:
        answer = _last(output)
    except ValueError as error:
        raise ConfigError(f"{_told(python)} does not answer: {error}. {_REMEDY}") from error
    return Machine(
        versions=answer["versions"],
        gpus=tuple(answer["gpus"]),
        cluster=_cluster(answer["cluster"]),
        trouble=answer["trouble"],
        running=answer["running"],
    )


def _last(output: str) -> Mapping[str, Any]:
    """The answer, which is the last line.

    Raises:
        ValueError: It is none.
    """
    line = (output.splitlines() or [""])[-1]
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or "versions" not in answer:
        raise ValueError(f"expected its versions, got {line[:60]!r}")
    return answer


_REMEDY = "Set optimizer.openrlhf.python to the Python of an environment with OpenRLHF (docs/openrlhf.md)."


def _told(python: str) -> str:
    return f"optimizer.openrlhf.python, {python!r},"


def _cluster(answer: Mapping[str, object] | None) -> Cluster | None:
    if answer is None:
        return None
    nodes: list[dict[str, object]] = answer["nodes"]  # type: ignore[assignment]
    return Cluster(
        gpus=tuple((str(node["host"]), int(str(node["gpus"]))) for node in nodes),
        free=int(str(answer["free"])),
        here=str(answer["here"]),
    )
