"""Joining and leaving a Ray cluster, quietly, and what is known of its nodes."""

from __future__ import annotations

import asyncio
import logging
import socket
import warnings
from collections.abc import Awaitable, Sequence

import ray
import ray._private.worker as ray_worker
from attrs import frozen

from wer.errors import ConfigError, WerError

_PROBE_S = 5.0
_PROBE_EVERY_S = 10.0
_MISSES = 3
_HEADLESS = (
    "the head of the Ray cluster no longer answers. Start the cluster again, and go on with --resume; or with "
    "--resume and --runner local."
)
_START = (
    "Start one with `ray start --head` here and `ray start --address HOST:6379` on every other node, and run "
    "wer on one of its nodes with --ray-address HOST:6379; or leave --runner ray out."
)


@frozen(kw_only=True)
class Node:
    """One machine of the cluster.

    Attributes:
        place: Its address, and its name when that is another: for people.
    """

    id: str
    place: str


class Cluster:
    """This process's membership of a cluster. A process that was a member already stays one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._joined = False
        self._headless = asyncio.Event()

    def join(self) -> None:
        """Become a driver of the cluster. Ray's own lines stay out of the display.

        Raises:
            ConfigError: There is no such cluster, with the remedy.
        """
        if self._address.startswith("ray://"):
            raise ConfigError(
                f"--ray-address {self._address!r} is one of Ray Client, which wer does not speak. {_START}"
            )
        if ray.is_initialized():
            return
        if self._address not in ("", "auto"):
            _probe(self._address)
        self._print, ray_worker.print_to_stdstream = ray_worker.print_to_stdstream, _silence
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(
                    address=self._address or "auto",
                    namespace="wer",
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                )
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            ray_worker.print_to_stdstream = self._print
            where = f"the Ray cluster {self._address!r}" if self._address else "a Ray cluster on this machine"
            raise ConfigError(
                f"cannot join {where}: {str(error).splitlines()[0] if str(error) else error!r}. {_START}"
            ) from error
        self._joined = True

    async def watch(self) -> None:
        """Return once the head did not answer several times in a row: every `unless_headless` then ends.

        Ray ends a process whose head has been gone for a minute, without a word of ours.
        """
        misses = 0
        while misses < _MISSES:
            await asyncio.sleep(_PROBE_EVERY_S)
            misses = 0 if await self.answers() else misses + 1
        self._headless.set()

    async def unless_headless(self, reference: Awaitable[str]) -> str:
        """Wait for something of the cluster, but no longer than it has a head.

        Raises:
            WerError: It has none, which no further try mends.
        """
        answer = asyncio.ensure_future(reference)
        headless = asyncio.ensure_future(self._headless.wait())
        try:
            await asyncio.wait({answer, headless}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise WerError(_HEADLESS)
            return answer.result()
        finally:
            headless.cancel()
            answer.cancel()

    def demand_head(self) -> None:
        """Refuse to ask anything of a cluster without a head.

        Raises:
            WerError: It has none.
        """
        if self._headless.is_set():
            raise WerError(_HEADLESS)

    def closing(self) -> None:
        """From now on workers are asked even without a head: they may be there still."""
        self._headless.clear()

    async def answers(self) -> bool:
        """Whether the cluster's head is there."""
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        try:
            async with asyncio.timeout(_PROBE_S):
                _, line = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError):
            return False
        line.close()
        return True

    def leave(self) -> None:
        """Undo what `join` did. Safe to call twice."""
        if self._joined:
            self._joined = False
            ray.shutdown()
            ray_worker.print_to_stdstream = self._print

    def nodes(self, resource: str) -> Sequence[Node]:
        """The living nodes, in a stable order; with a resource only those that have it."""
        return [
            Node(id=str(node["NodeID"]), place=_place(node["NodeManagerAddress"], node.get("NodeName", "")))
            for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"]))  # type: ignore[no-untyped-call]
            if node["Alive"] and (not resource or node["Resources"].get(resource))
        ]


def _place(address: str, name: str) -> str:
    return f"{address} ({name})" if name and name != address else address


def _silence(*_: object, **__: object) -> None:
    """In the place of the private function with which Ray prints the cluster's errors, for want of a public switch.

    ``log_to_driver=False`` silences what workers print, not what Ray itself reports.
    """


def _probe(address: str) -> None:
    """Find out within seconds what Ray tries for a minute.

    Raises:
        ConfigError: Nobody listens there.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"--ray-address {address!r} is not HOST:PORT, such as 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), timeout=_PROBE_S).close()
    except OSError as error:
        raise ConfigError(f"no Ray cluster answers at {address!r} ({error}). {_START}") from error
