"""A user's command line: split without a shell, with placeholders that each call fills in."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import frozen

from wer.errors import ConfigError
from wer.records import content_hash
from wer.tables import nearest

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")
_BRACES = {"{{": "{", "}}": "}"}
_CODE_BYTES = 16 << 20


@frozen(kw_only=True)
class Words:
    """A command.

    Attributes:
        all: Its words; the first is the program.
        digest: Hash of the words, and of the content of the files that they name but the program's.
    """

    all: tuple[str, ...]
    digest: str

    @classmethod
    def read(cls, line: str, *, known: Collection[str], setting: str) -> Words:
        """Read a command line.

        Args:
            known: The placeholders that it may hold.
            setting: Where it is written, for messages.

        Raises:
            ConfigError: It can't be split, names no program, or has another placeholder.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ConfigError(
                f"{setting}: {line!r} can't be split into words: {error}. Check its quotes."
            ) from error
        if not words:
            raise ConfigError(f"{setting} names no program. Write it like 'command: python agent.py'.")
        program = shutil.which(words[0])
        if program is None:
            raise ConfigError(
                f"{setting}: there is no program {words[0]!r}. Write its path, or install it; it is run without a "
                "shell, so pipes and variables need one: command: sh -c '...'."
            )
        for name in (found[1] for word in words for found in _PLACEHOLDER.finditer(word) if found[1]):
            if name not in known:
                raise ConfigError(
                    f"{setting}: there is nothing to put in the place of {{{name}}}{nearest(name, known) or '.'} Here "
                    f"are {', '.join(f'{{{each}}}' for each in known)}; braces of your own are written {{{{ and }}}}."
                )
        files = [_content(Path(word)) for word in words[1:]]
        return cls(all=(program, *words[1:]), digest=content_hash([*words, files]))

    @property
    def name(self) -> str:
        """What messages call it: the program, and the script that it runs."""
        return " ".join(Path(word).name for word in self.all[:2] if not word.startswith("-"))

    def filled(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The command with its placeholders filled in; a NUL, which no argument can hold, is dropped."""

        def fill(found: re.Match[str]) -> str:
            return values[found[1]] if found[1] else _BRACES[found[0]]

        return tuple(_PLACEHOLDER.sub(fill, word).replace("\0", "") for word in self.all)


def _content(path: Path) -> str:
    """Hash of a file; of a very large one, which is hardly code, its size."""
    try:
        if not path.is_file():
            return ""
        size = path.stat().st_size
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if size <= _CODE_BYTES else str(size)
    except (OSError, ValueError):
        return ""
