"""Several copies of one model, each busy with one request, so that every core works.

Two single-threaded copies answer about twice as fast as one copy with two threads, and
each keeps its own prompt cache. Requests go to the idle copy that has read most of the prompt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from wer.errors import ModelError
from wer.records import Json
from wer_llamacpp.instance import Instance


class InstancePool:
    """Threads with a copy of the model each; safe to use from any thread.

    Args:
        load: Loads one more copy; called when all copies are busy and more are allowed.
        size: The most copies.
        first: A copy that is loaded already.
    """

    def __init__(self, load: Callable[[], Instance], size: int, *, first: Instance) -> None:
        self._load = load
        self._threads = ThreadPoolExecutor(max_workers=size, thread_name_prefix="llama")
        self._idle = [first]
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def submit(self, prompt: str, body: Mapping[str, Json], stopped: threading.Event) -> Future[Json]:
        """Queue one request.

        Args:
            prompt: The request's text, to find the copy that has read most of it.
            stopped: Set it to end the request early; its result is then worth nothing.
        """
        return self._threads.submit(self._serve, prompt, body, stopped)

    def close(self) -> None:
        """Stop what runs at its next token, wait for it, and free the memory. Safe to call twice."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._idle.clear()

    def _serve(self, prompt: str, body: Mapping[str, Json], stopped: threading.Event) -> Json:
        def is_over() -> bool:
            return stopped.is_set() or self._closed.is_set()

        answer: Json = None
        if not is_over():
            with self._leased(prompt) as instance:
                answer = instance.ask(body, is_over)
        if is_over():
            raise ModelError("the local model was closed while it was asked")
        return answer

    @contextmanager
    def _leased(self, prompt: str) -> Iterator[Instance]:
        """Take the idle copy that shares the longest beginning with the prompt, or load one.

        There are never more threads than copies allowed, so a thread never waits here.
        """
        with self._lock:
            best = max(self._idle, key=lambda copy: _shared(copy.last_prompt, prompt), default=None)
            if best is not None:
                self._idle.remove(best)
        instance = best or self._load()
        instance.last_prompt = prompt
        try:
            yield instance
        finally:
            with self._lock:
                self._idle.append(instance)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
