"""What makes a trained writer's folder fit to be shared: a card that says what it is, and what it was worth."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import yaml

from wer.configuration import RunConfig
from wer.errors import WerError
from wer.records import JsonObject
from wer.reports.reporting import write_report
from wer.store import Store
from wer.writers import FILE, described, licence_files


def complete(folder: Path, run: Path, config: RunConfig) -> None:
    """Lay a card (``README.md``) with the run's table, and the licence's text where it is known, beside the weights.

    Args:
        folder: A copy of the trained writer's folder.
        run: The run that trained it.

    Raises:
        WerError: Nobody wrote down what it was trained with.
    """
    found = described(folder)
    if found is None:
        raise WerError(
            f"run {run.name!r} was trained by a WER that did not keep what a writer was trained with. "
            "Export the weights alone: --format hf."
        )
    store = Store(run / "wer.sqlite", read_only=True)
    try:
        table = write_report(run, store, config).read_text("utf-8")
    finally:
        store.close()
    (folder / "README.md").write_text("\n".join(_card(found, table)) + "\n", "utf-8")
    for file in licence_files(str(found["base"])):
        shutil.copyfile(file, folder / file.name)


def _card(found: JsonObject, table: str) -> Iterator[str]:
    named = str(found["licence"])
    front = {
        "license": named.lower() if not named.startswith("unknown") else "other",
        "library_name": "transformers",
        "tags": ["wer", "skill-optimizer"],
    }
    yield f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n"
    yield "# A trained Skill Optimizer\n"
    yield (
        f"It rewrites the written skill of a tool-using agent. Trained with `--backend {found['backend']}` of WER "
        f"{found['wer']} from `{found['base']}`; licence: {named}.\n"
    )
    yield "```sh\nwer refine SKILL.md --env ENV --executor MODEL --backend grpo --writer THIS-FOLDER\n```\n"
    yield (
        f"It learnt to answer version `{found['template']['version']}` of the prompt template, and a WER that asks in "
        f"other words refuses it. `{FILE}` has an example of such a prompt, the reward and the other settings.\n"
    )
    yield "## What it was worth\n"
    yield "\n".join(f"##{line}" if line.startswith("#") else line for line in table.splitlines())
