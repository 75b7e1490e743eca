"""What every model must do: seen on the model that the user names, and on a server that fails on purpose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from attrs import frozen

from wer.conformance.checks import Check, Fault, Kind, NotApplicable, Settings
from wer.contracts import Model, Starting
from wer.errors import ModelError, ModelUnavailable
from wer.plugins import Plugins
from wer.records import Message, Reply, Sampling, Usage

_ASK = (Message(role="user", content="Answer with one word: hello."),)
_SAMPLING = Sampling(max_tokens=16, seed=1)
_FOR_NOW = {
    "an answer 429": b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "an answer 503": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "a connection that breaks off": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    "no answer at all": b"",
}
_FOR_GOOD = {
    "an answer 401": b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "an answer 400": b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
}


@frozen(kw_only=True)
class Subject:
    """A model that is open, and how it was named."""

    spec: str
    model: Model
    plugins: Plugins


async def identity_is_plain(subject: Subject) -> None:
    """Rollouts of equal models are shared."""
    first = json.dumps(dict(subject.model.identity), sort_keys=True)
    second = json.dumps(dict(subject.model.identity), sort_keys=True)
    if first != second or first == "{}":
        raise Fault(
            f"its identity is {first} and then {second}",
            "Name provider, model and file or address; nothing else.",
        )


async def an_answer_costs(subject: Subject) -> str:
    """A reply brings its usage: caps are kept by it."""
    reply = await subject.model.complete(_ASK, (), _SAMPLING)
    if not isinstance(reply, Reply) or reply.usage.calls != 1:
        raise Fault(f"one call was answered with {reply!r}", "Return a Reply whose usage counts 1 call.")
    if not reply.usage.prompt_tokens or not reply.usage.completion_tokens:
        raise Fault(
            f"a reply says that it cost {reply.usage}", "Report the prompt's and the answer's tokens."
        )
    return f"{reply.usage.prompt_tokens} prompt tokens, {reply.usage.completion_tokens} of the answer"


async def calls_at_once(subject: Subject) -> None:
    """Many rollouts share one model."""
    replies = await asyncio.gather(*(subject.model.complete(_ASK, (), _SAMPLING) for _ in range(4)))
    usage = sum((reply.usage for reply in replies), Usage())
    if usage.calls != 4:
        raise Fault(f"four calls at once count as {usage.calls}", "Give each call its own reply and usage.")


async def a_call_can_be_cancelled(subject: Subject) -> None:
    """The loop gives up a rollout that hangs; the next one asks again."""
    call = asyncio.ensure_future(subject.model.complete(_ASK, (), _SAMPLING))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call], timeout=60.0)
    if not call.done():
        raise Fault("a cancelled call did not end in a minute", "Let asyncio.CancelledError through.")
    with suppress(asyncio.CancelledError):
        call.result()
    await subject.model.complete(_ASK, (), _SAMPLING)


async def failures_are_told_apart(subject: Subject) -> str:
    """What another try may mend is tried again by the loop, and by nobody else."""
    _, at, _ = subject.spec.rpartition("@")
    if not at:
        raise NotApplicable("the model is at no address that a failing server could take the place of")
    for answers, kind in ((_FOR_NOW, ModelUnavailable), (_FOR_GOOD, ModelError)):
        for what, answer in answers.items():
            raised, count = await _asked(subject, answer)
            if type(raised) is not kind:
                raise Fault(
                    f"{what} is {raised!r}",
                    f"Raise {kind.__name__}: 429, 5xx, time-outs, resets and unreadable answers are ModelUnavailable, "
                    "anything that another try won't mend is ModelError.",
                )
            if count != 1:
                raise Fault(
                    f"{what} was asked for {count} times",
                    "Ask once and raise at the first failure: retries, their waits and their number are the loop's.",
                )
    return f"{len(_FOR_NOW) + len(_FOR_GOOD)} ways to fail"


async def _asked(subject: Subject, answer: bytes) -> tuple[BaseException | None, int]:
    """Ask a server that gives this answer to every request; what was raised, and how often it was asked."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        head = await reader.readuntil(b"\r\n\r\n")
        count += head.startswith(b"POST")
        writer.write(answer)
        with suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    name = subject.spec.rpartition("@")[0]
    model = subject.plugins.model(f"{name}@http://{host}:{port}/v1")
    try:
        await model.complete(_ASK, (), _SAMPLING)
    except Exception as error:
        return error, count
    finally:
        await model.close()
        server.close()
    return None, count


async def it_closes_twice(subject: Subject) -> None:
    """A model may play several roles, and each of them closes it."""
    await subject.model.close()
    await subject.model.close()


@asynccontextmanager
async def open_subject(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Subject]:
    """Open the model that the settings name, of the provider called so."""
    if settings.model.partition("/")[0] != name:
        raise NotApplicable(
            f"give --model {name}/NAME, or {name}/NAME@URL, to check a model of this provider"
        )
    model = plugins.model(settings.model)
    try:
        if isinstance(model, Starting):
            await model.ready()
        yield Subject(spec=settings.model, model=model, plugins=plugins)
    finally:
        await model.close()


MODELS: Kind[Subject] = Kind(
    checks=(
        Check("its identity is plain and stays the same", identity_is_plain),
        Check("an answer says what it cost", an_answer_costs),
        Check("calls at once get their own answers", calls_at_once),
        Check("a call can be cancelled, and the next one is answered", a_call_can_be_cancelled),
        Check("failures for now and for good are told apart, at the first", failures_are_told_apart),
        Check("it can be closed twice", it_closes_twice),
    ),
    open=open_subject,
)
