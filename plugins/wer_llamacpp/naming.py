"""What a user may write after ``local/``: a catalogue name or a path, and how to run it."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

from wer import catalogue
from wer.errors import ConfigError
from wer.naming import name_and_options


@frozen(kw_only=True)
class LocalOptions:
    """How a local model runs, written as a query: ``?context=16384&instances=1``.

    Attributes:
        context: Tokens of prompt and answer together.
        instances: Copies of the model, one thread each; 0 is one a core. A copy
            is loaded when it is first needed.
    """

    context: int = 8192
    instances: int = 0

    def __attrs_post_init__(self) -> None:
        if self.context < 256 or self.instances < 0:
            raise ValueError(
                "context must be at least 256 and instances at least 0, "
                f"got {self.context} and {self.instances}"
            )


@frozen(kw_only=True)
class LocalName:
    """A model file by name or path, with its options."""

    name: str
    options: LocalOptions

    @classmethod
    def parse(cls, rest: str) -> LocalName:
        """Read ``NAME[?context=..&instances=..]``.

        Raises:
            ConfigError: An option is unknown or not a whole number.
        """
        name, options = name_and_options("local", rest, LocalOptions)
        return cls(name=name, options=options)

    @property
    def instances(self) -> int:
        """Copies of the model: as asked, or one a core that this process may use."""
        return self.options.instances or len(os.sched_getaffinity(0))

    def locate(self) -> tuple[Path, str]:
        """Find the file, downloading a catalogue model at its first use; give its path and SHA-256.

        Raises:
            ConfigError: Neither a file nor a name of the catalogue.
            WerError: The download failed.
        """
        if "/" in self.name or self.name.endswith(".gguf"):
            path = Path(self.name).expanduser()
            if not path.is_file():
                raise ConfigError(
                    f"no file {self.name!r}. Give the path of a GGUF file, as in local//home/me/model.gguf, "
                    f"or one of: {', '.join(catalogue.entries())}."
                )
            return path.resolve(), catalogue.sha256(path)
        return catalogue.pull(self.name), catalogue.find(self.name).sha256
