"""``wer export``: what a run made, in forms that other tools read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer.cli.options import Runs, run_folder
from wer.codec import to_json
from wer.errors import WerError
from wer.records import Experience
from wer.store import Store
from wer.writing import revision_messages


def export(
    run: str | None = None,
    *,
    form: Annotated[
        Literal["skills", "jsonl", "metrics", "hf"],
        Parameter(
            name="--format",
            help="skills: Agent Skills folders; jsonl: scored candidates with prompts and rollouts; "
            "metrics: the figures of every update step, as jsonl; "
            "hf: the trained writer as a Hugging Face folder.",
        ),
    ] = "skills",
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
        _lines(folder, out, lambda store: (_line(stage, found) for stage, found in store.experiences()))
    elif form == "metrics":
        _lines(folder, out, _steps)
    else:
        source = folder / "skills" if form == "skills" else folder / "checkpoints" / "final" / "merged"
        if not source.is_dir():
            raise WerError(
                f"run {folder.name!r} has no {source.relative_to(folder)}: it made none, or did not end."
            )
        shutil.copytree(source, out)
    Console(soft_wrap=True).print(str(out), markup=False)


def _lines(folder: Path, out: Path, read: Callable[[Store], Iterable[Mapping[str, object]]]) -> None:
    store = Store(folder / "wer.sqlite")
    try:
        with out.open("w", encoding="utf-8") as file:
            for line in read(store):
                file.write(json.dumps(line) + "\n")
    finally:
        store.close()


def _steps(store: Store) -> Iterator[Mapping[str, object]]:
    for stage, step, metrics in store.metrics():
        yield {"stage": stage, "step": step, **metrics}


def _line(stage: str, found: Experience) -> dict[str, object]:
    return {
        "stage": stage,
        "task": found.state.task.id,
        "prompt": [
            {"role": message.role, "content": message.content} for message in revision_messages(found.state)
        ],
        "completion": found.candidate.text,
        "reward": json.loads(to_json(found.reward)),
        "rollouts": [json.loads(to_json(rollout)) for rollout in found.rollouts],
    }
