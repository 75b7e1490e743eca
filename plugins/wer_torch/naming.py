"""What a user may write after ``torch/``: a catalogue name or a path, and how to run it."""

from __future__ import annotations

from attrs import frozen

from wer.naming import name_and_options


@frozen(kw_only=True)
class TorchOptions:
    """How a model runs, written as a query: ``?batch=16&context=8192&cache_mib=512``.

    Attributes:
        batch: The most requests in one pass over the weights.
        context: Tokens of prompt and answer together.
        cache_mib: Memory for keys and values of finished requests, so that a prompt
            that begins like an earlier one is read from where it differs.
    """

    batch: int = 16
    context: int = 8192
    cache_mib: int = 512

    def __attrs_post_init__(self) -> None:
        if self.batch < 1 or self.context < 64:
            raise ValueError(
                f"batch must be at least 1 and context at least 64, got {self.batch} and {self.context}"
            )


@frozen(kw_only=True)
class TorchName:
    """A model by name or path, with its options."""

    source: str
    options: TorchOptions

    @classmethod
    def parse(cls, rest: str) -> TorchName:
        """Read ``SOURCE[?batch=..&context=..&cache_mib=..]``.

        Raises:
            ConfigError: An option is unknown or not a whole number.
        """
        source, options = name_and_options("torch", rest, TorchOptions)
        return cls(source=source, options=options)
