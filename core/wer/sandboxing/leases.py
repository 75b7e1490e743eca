"""An episode as its user holds it: requests go out, answers come back, and nothing hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from wer.errors import SandboxError
from wer.records import Json, JsonObject
from wer.sandboxing.lines import Connection, Message
from wer.sandboxing.machines import Death


class LeasedEpisode:
    """The host's end of one forked child.

    Args:
        autopsy: Says why the child is gone, within bounded time.
        kill: Has the child killed; returns at once.
        timeout_s: For a request that names no time limit.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        layers: tuple[str, ...],
        autopsy: Callable[[], Awaitable[Death]],
        kill: Callable[[], None],
        timeout_s: float,
    ) -> None:
        self.layers = layers
        self._connection = connection
        self._autopsy = autopsy
        self._kill = kill
        self._timeout_s = timeout_s
        self._one_at_a_time = asyncio.Lock()
        self._count = 0
        self._answer: asyncio.Future[Message] | None = None
        self._over: SandboxError | None = None
        self._closed = False
        self._problem = ""
        connection.trust(self._heard, self._lost)

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        """Call an exposed method of the domain; see `wer.contracts.Episode`."""
        async with self._one_at_a_time:
            if self._over is not None:
                raise self._over
            if self._closed:
                raise SandboxError(f"{method!r} was called after the episode was closed", cause="dead")
            try:
                return await self._ask(method, params, self._timeout_s if timeout_s is None else timeout_s)
            except asyncio.CancelledError:
                self._end()  # the answer to this request must not be taken for the next one's
                raise

    async def close(self) -> None:
        """Have the child killed. Safe to call twice."""
        self._end()

    async def _ask(self, method: str, params: JsonObject, timeout_s: float) -> Json:
        self._count += 1
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._connection.say({"id": self._count, "method": method, "params": dict(params)})
        except (TypeError, ValueError) as error:
            raise SandboxError(f"the call of {method!r} cannot be sent: {error}", cause="protocol") from error
        try:
            if not self._connection.open:
                raise EOFError
            async with asyncio.timeout(timeout_s):
                answer = await self._answer
        except TimeoutError:
            self._end()
            death = await self._autopsy()
            raise self._fail(
                "hung", f"{_called(method, params)} gave no answer in {timeout_s:g} s", death.words
            ) from None
        except EOFError:
            self._end()
            death = await self._autopsy()
            if self._problem:
                story, cause = f"the episode answered {method!r} with {self._problem}", "protocol"
            else:
                story, cause = f"the episode died during {method!r}: {death.story}", death.cause
            raise self._fail(cause, story, death.words) from None
        finally:
            self._answer = None
        return self._read(method, answer)

    def _read(self, method: str, answer: Message) -> Json:
        if answer.get("id") != self._count or not answer.keys() & {"result", "error"}:
            self._end()
            raise self._fail("protocol", f"the episode answered {method!r} with something else", "")
        if "error" not in answer:
            return answer["result"]
        error = answer["error"] if isinstance(answer["error"], dict) else {}
        kind = str(error.get("type"))
        raise SandboxError(
            f"{method!r} raised {kind}: {error.get('message')} (a domain should answer with data)",
            cause="out_of_memory" if kind == "MemoryError" else "protocol",
            stderr_tail=str(error.get("traceback", "")),
        )

    def _fail(self, cause: str, story: str, words: str) -> SandboxError:
        self._over = SandboxError(story, cause=cause, stderr_tail=words)
        return self._over

    def _heard(self, message: Message) -> None:
        if self._answer is None or self._answer.done():
            self._connection.hang_up("words that nobody asked for")
        else:
            self._answer.set_result(message)

    def _lost(self, problem: str) -> None:
        self._problem = problem
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(EOFError())

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._kill()
            self._connection.hang_up()


def _called(method: str, params: JsonObject) -> str:
    """What was asked, with the tool where one is named."""
    return f"{method!r} of {params['name']!r}" if "name" in params else repr(method)
