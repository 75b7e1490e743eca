"""Other libraries, each in a virtual environment of its own under the cache: never in the project's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import field, frozen

from wer.paths import cache_dir

PINS: dict[str, Sequence[Sequence[str]]] = {
    "openai": (("openai==3.4.0",),),
    "inspect_ai": (("inspect_ai==0.3.285", "openai==3.4.0"),),
    # torch first and by itself, so that the others take the build that is there.
    "trl": (("torch==2.13.0",), ("trl==1.16.0", "transformers==5.24.0")),
}
"""What each environment gets, a call of pip after the other."""


@frozen(kw_only=True)
class Peers:
    """Makes a peer's environment when it is first asked for.

    Attributes:
        wanted: False leaves all of them out.
        say: Told what takes its time, and why a peer is missing.
    """

    wanted: bool
    say: Callable[[str], None]
    _missing: dict[str, str] = field(factory=dict, init=False)

    def python(self, name: str) -> Path | None:
        """The interpreter of a peer's environment; None when it is left out or can't be made."""
        if not self.wanted or name in self._missing:
            return None
        digest = hashlib.sha256(repr((PINS[name], sys.version)).encode()).hexdigest()[:10]
        folder = cache_dir() / "benchmarks" / f"{name}-{digest}"
        python = folder / "bin" / "python"
        if (folder / "made").is_file():
            return python
        self.say(f"  installing {name} into {folder} (once)")
        try:
            shutil.rmtree(folder, ignore_errors=True)
            _quietly(sys.executable, "-m", "venv", str(folder))
            for packages in PINS[name]:
                _quietly(str(python), "-m", "pip", "install", "--quiet", *packages)
        except subprocess.CalledProcessError as error:
            self._missing[name] = (error.stderr.strip().splitlines() or ["?"])[-1]
            self.say(f"  {name} cannot be installed and is left out: {self._missing[name]}")
            return None
        (folder / "made").touch()
        return python

    def why_missing(self, *names: str) -> str:
        """One sentence on the peers that are not beside a figure; empty when all are."""
        if not self.wanted:
            return "peers were left out (--no-peers)"
        return "; ".join(f"{name} could not be installed" for name in names if name in self._missing)


def _quietly(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
