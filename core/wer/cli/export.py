"""``wer export``: what a run made, in forms that other tools read."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import folders
from wer.cli.options import Runs, run_folder
from wer.codec import to_json
from wer.configuration import RunConfig
from wer.errors import WerError
from wer.methods import configurations
from wer.records import Experience
from wer.reports.learning import method_at
from wer.reports.sharing import complete
from wer.reports.shipping import measured_folder
from wer.reports.showing import published
from wer.shown import Shown
from wer.skills.documents import skill_prompt
from wer.store import Store
from wer.writing import revision_messages


def export(
    run: str | None = None,
    *,
    form: Annotated[
        Literal["skill", "prompt", "jsonl", "metrics", "hf", "writer"],
        Parameter(
            name="--format",
            help="skill: Agent Skills folders; prompt: what the skills add to an agent's system prompt; jsonl: scored "
            "candidates with prompts and rollouts; metrics: the figures of every update step, as jsonl; hf: the "
            "trained writer's weights as a Hugging Face folder; writer: the same to share, with the prompt template "
            "that it was trained with, its settings, licence and table.",
        ),
    ] = "skill",
    out: Annotated[
        Path,
        Parameter(name=["--out", "-o"], help="Folder, or file for jsonl and metrics. Must not exist."),
    ],
    runs: Runs = Path("runs"),
) -> None:
    """Export a run's skills, experience, training figures or trained writer.

    Args:
        run: Run id or folder. Default: the newest.
    """
    folder = run_folder(runs, run)
    if out.exists():
        raise WerError(f"{str(out)!r} exists already. Name another with --out.")
    if form == "jsonl":
        _lines(folder, out, lambda store: _candidates(store, folders.configuration(folder)))
    elif form == "metrics":
        _lines(folder, out, _steps)
    elif form == "prompt":
        _prompts(folder, out)
    else:
        made = _made(folder, "skills" if form == "skill" else "checkpoints/final/merged")
        if form == "skill":
            _demand_measured(folder)
        with _whole(out) as scratch:
            shutil.copytree(made, scratch)
            if form == "writer":
                complete(scratch, folder, folders.configuration(folder))
    Console(soft_wrap=True).print(str(out), markup=False)


def _made(folder: Path, name: str) -> Path:
    if not (folder / name).is_dir():
        raise WerError(f"run {folder.name!r} has no {name}: it made none, or did not end. Name another run.")
    return folder / name


def _demand_measured(folder: Path) -> None:
    with closing(Store(folder / "wer.sqlite", read_only=True)) as store:
        found = published(store)
    for by_condition in found.values():
        for condition, skill in by_condition.items():
            if not skill.empty:
                measured_folder(folder, condition, skill)


def _prompts(folder: Path, out: Path) -> None:
    """A text a published skill: the very section with which an executor's system prompt ended."""
    with closing(Store(folder / "wer.sqlite", read_only=True)) as store:
        found = published(store)
    texts = {
        f"{condition}/{skill.name}.md": skill_prompt(skill)
        for by_condition in found.values()
        for condition, skill in by_condition.items()
    }
    if not texts:
        raise WerError(f"run {folder.name!r} has no skills: it made none, or did not end. Name another run.")
    with _whole(out) as scratch:
        for name, text in texts.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(text.encode())


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A place beside `out` for a file or a folder that takes its name once it is complete."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".wer-export-", dir=out.parent) as scratch:
        yield Path(scratch) / out.name
        (Path(scratch) / out.name).rename(out)


def _lines(folder: Path, out: Path, read: Callable[[Store], Iterable[Mapping[str, object]]]) -> None:
    store = Store(folder / "wer.sqlite", read_only=True)
    try:
        lines = iter(read(store))
        first = next(lines, None)
        if first is None:
            raise WerError(
                f"run {folder.name!r} has no such lines: it learnt nothing, or did not end. Name another run."
            )
        with _whole(out) as scratch, scratch.open("w", encoding="utf-8") as file:
            for line in chain((first,), lines):
                file.write(json.dumps(line, allow_nan=False) + "\n")
    finally:
        store.close()


def _steps(store: Store) -> Iterator[Mapping[str, object]]:
    for stage, step, metrics in store.metrics():
        known = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        yield {"stage": stage, "step": step, **known}  # JSON has no infinities


def _candidates(store: Store, config: RunConfig) -> Iterator[Mapping[str, object]]:
    configs = {"": config, **configurations(config)}
    for stage, found in store.experiences():
        yield _line(stage, found, configs[method_at(stage, config)].shown)


def _line(stage: str, found: Experience, shown: Shown) -> dict[str, object]:
    """One candidate: the prompt as its writer saw it, its rollouts as they are."""
    asked = revision_messages(shown.experience(found).state)
    return {
        "stage": stage,
        "task": found.state.task.id,
        "prompt": [{"role": message.role, "content": message.content} for message in asked],
        "completion": found.candidate.text,
        "reward": json.loads(to_json(found.reward)),
        "rollouts": [json.loads(to_json(rollout)) for rollout in found.rollouts],
    }
