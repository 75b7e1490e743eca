"""What travels between the driver and a worker: JSON text, failures included.

Exceptions are not pickled. A failure is data with the name of its class in `wer.errors`, so
that the driver raises the same error as if the unit had run there.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from wer import errors
from wer.codec import from_json, to_json
from wer.errors import InfrastructureError, StoreError, WerError
from wer.records import Json, Usage


@frozen(kw_only=True)
class Failure:
    """An exception as data.

    Attributes:
        kind: The nearest class of `wer.errors`; empty for an exception that is none of WER's.
        cause: As in `wer.errors.SandboxError`.
        what: As in `wer.errors.InfrastructureError.kind`.
        stderr_tail: Likewise.
        retry_after_s: As in `wer.errors.ModelUnavailable`.
        trace: Where it was raised, for a fault that nobody foresaw.
    """

    kind: str
    message: str
    cause: str = ""
    what: str = ""
    stderr_tail: str = ""
    retry_after_s: float | None = None
    trace: str = ""


@frozen(kw_only=True)
class Answer:
    """A worker's answer to anything.

    Attributes:
        result: Texts by name; empty after a failure.
        spent: What each role's model calls cost since the last answer, whoever asked.
        faults: Failures of models since then that were tried again: kind, role, how often.
        said: What the user should know, a line each.
    """

    result: Mapping[str, str] = field(factory=dict)
    failure: Failure | None = None
    spent: Mapping[str, Usage] = field(factory=dict)
    faults: Sequence[tuple[str, str, int]] = ()
    said: Sequence[str] = ()


@frozen(kw_only=True)
class Hello:
    """What a worker says of itself once it is open, and whenever its health is asked.

    Attributes:
        identity: The executor's, as JSON.
        isolation: What isolates its episodes.
        concurrency: Units that it can work on at a time.
        running: Units that it works on now.
        finished: Units that it has finished.
    """

    identity: Json
    isolation: str
    concurrency: int
    running: int = 0
    finished: int = 0


def read(text: str) -> Answer:
    """Read a worker's answer.

    Raises:
        InfrastructureError: It is none.
    """
    try:
        return from_json(text, Answer)
    except StoreError as error:
        raise InfrastructureError(
            f"a Ray worker answered with something else: {text[:60]!r}. Install the same WER on every node."
        ) from error


def write(answer: Answer) -> str:
    """Write an answer as text."""
    return to_json(answer)


def failure_of(error: Exception) -> Failure:
    """Turn an exception into data."""
    kinds = [kind.__name__ for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind]
    return Failure(
        kind=kinds[0] if kinds else "",
        message=str(error) if kinds else f"{type(error).__name__}: {error}",
        cause=str(getattr(error, "cause", "")),
        what=str(getattr(error, "kind", "")),
        stderr_tail=str(getattr(error, "stderr_tail", "")),
        retry_after_s=getattr(error, "retry_after_s", None),
        trace="" if kinds else "".join(traceback.format_exception(error)),
    )


def error_of(failure: Failure, *, place: str) -> Exception:
    """Turn data back into the exception that it was.

    Args:
        place: Which worker it comes from, named in the message.
    """
    kind = vars(errors).get(failure.kind)
    message = f"{failure.message} (on {place})"
    if kind is errors.SandboxError:
        error = errors.SandboxError(message, cause=failure.cause)  # the message ends with the last words
        error.stderr_tail = failure.stderr_tail
        return error
    if kind is errors.ModelUnavailable:
        return errors.ModelUnavailable(message, retry_after_s=failure.retry_after_s, kind=failure.what)
    if isinstance(kind, type) and issubclass(kind, WerError):
        return kind(message)
    return RuntimeError(f"{message}\n{failure.trace}")
