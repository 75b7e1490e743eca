"""A language model behind any interface, what it is made from, and what is known of it before it is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from wer.records import JsonObject, Message, Reply, Sampling, ToolSpec


class Model(Protocol):
    """A language model behind any interface."""

    @property
    def identity(self) -> JsonObject:
        """What makes two models the same model: provider, name, file hash. No secrets."""
        ...

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once. Retries are the caller's, so raise at the first failure.

        Raises:
            ModelUnavailable: 429, 5xx, time-out, reset, truncated or unreadable answer.
            ModelError: Anything that another try won't mend.
        """
        ...

    async def close(self) -> None:
        """Free connections, threads and memory; nothing is asked afterwards. Safe to call twice."""
        ...


@runtime_checkable
class Starting(Protocol):
    """A model that takes a while before it can answer: its factory returns while it is still loading."""

    async def ready(self) -> None:
        """Return once it can answer. Called when a run opens; a call of `Model.complete` waits too.

        Raises:
            ModelError: It did not start, with the cause.
        """
        ...


def _silent(line: str) -> None:
    """Say nothing."""


@frozen(kw_only=True)
class ModelSetup:
    """What a model is made from.

    Attributes:
        name: The text after the first slash, ``name[@url]``.
        gpus: GPUs of this machine that are the role's alone, by the numbers that
            ``nvidia-smi`` lists; empty when the user gave it none.
        folder: Where logs may be written; None when there is no run.
        say: Told one short line at a time about work that takes seconds.
    """

    name: str
    gpus: tuple[int, ...] = ()
    folder: Path | None = None
    say: Callable[[str], None] = _silent


Cost: TypeAlias = Literal["free", "reported", "unpriced"]


def _never(name: str) -> bool:
    """Most providers start no server."""
    return False


def _unchecked(name: str) -> None:
    """Most providers say what is missing when a model is opened."""


def _itself() -> str:
    """Most providers are all there is to them."""
    return ""


@frozen
class Provider:
    """A factory of models, with what the loop must know of them before one is opened.

    The forecast, and the refusal of a cap that could not be kept, come before a key is
    asked for, a file is fetched or weights are loaded.

    Attributes:
        factory: Makes a model, or says what is missing.
        cost: Of a call. ``free``: it runs on the user's own machine. ``reported``: a reply
            brings its cost, where it is known. ``unpriced``: only the user knows (``--price``).
        concurrency: Calls at a time beyond which more don't help.
        serves: Whether a model of that name is a server that WER starts and ends. It belongs to
            this machine, so that the workers of another runner can't share it.
        check: Refuses a name for which something is missing that costs nothing to look for, such as a
            key in the environment; called before a run begins. Raises `WerError` with the remedy.
        program: Finds a program that it needs beside its plugin, for ``wer doctor``, and says which;
            empty when it needs none. Raises `ConfigError`: what is missing, and then, in further
            sentences, the remedy.
    """

    factory: Callable[..., Model]
    cost: Cost = "reported"
    concurrency: int = 32
    serves: Callable[[str], bool] = _never
    check: Callable[[str], None] = _unchecked
    program: Callable[[], str] = _itself

    def __call__(self, *given: Any) -> Model:
        """Open a model: a provider is offered in the place of its bare factory."""
        return self.factory(*given)
