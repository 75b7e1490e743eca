"""Where the loop says that a piece of work begins and ends, for the trackers that draw traces.

Whoever works needs no tracer handed down: the run's are those of the context, which every task that
it starts inherits. Without one, a span costs a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

from wer.contracts import Tell, Tracing
from wer.records import Json

T = TypeVar("T")
Surround: TypeAlias = Callable[[str, Mapping[str, Json]], AbstractContextManager[Tell]]

_SURROUNDS: ContextVar[Sequence[Surround]] = ContextVar("wer_tracing", default=())


@contextmanager
def span(work: str, **attributes: Json) -> Iterator[Tell]:
    """Surround a piece of work.

    Args:
        work: As in `wer.contracts.Tracing.span`.

    Returns:
        What takes the attributes that are known at the end.
    """
    surrounds = _SURROUNDS.get()
    if not surrounds:
        yield _nobody
        return
    with ExitStack() as stack:
        tells = [stack.enter_context(surround(work, attributes)) for surround in surrounds]

        def tell(**more: Json) -> None:
            for each in tells:
                each(**more)

        yield tell


@contextmanager
def tracing(tracers: Mapping[str, Tracing], failed: Callable[[str, Exception], None]) -> Iterator[None]:
    """Let the work inside be traced.

    Args:
        failed: Told which tracer raised; it is left alone from then on.
    """
    token = _SURROUNDS.set([_guarded(name, tracer, failed) for name, tracer in tracers.items()])
    try:
        yield
    finally:
        _SURROUNDS.reset(token)


def _guarded(name: str, tracer: Tracing, failed: Callable[[str, Exception], None]) -> Surround:
    """A tracer's spans, whose failures are never those of the work."""
    working = True

    def attempt(act: Callable[[], T]) -> T | None:
        nonlocal working
        try:
            return act() if working else None
        except Exception as error:
            working = False
            failed(name, error)
            return None

    @contextmanager
    def surround(work: str, attributes: Mapping[str, Json]) -> Iterator[Tell]:
        around = attempt(lambda: tracer.span(work, attributes))
        tell = None if around is None else attempt(around.__enter__)
        if around is None or tell is None:
            yield _nobody
            return
        try:
            yield lambda **more: attempt(lambda: tell(**more))
        except BaseException as error:
            passing = (type(error), error, error.__traceback__)
            attempt(lambda: around.__exit__(*passing))
            raise
        attempt(lambda: around.__exit__(None, None, None))

    return surround


def _nobody(**more: Json) -> None:
    return None
