"""What of a trained policy is on disk, and how it gets from one phase to the next.

A phase's folder holds ``trainer`` (DeepSpeed's checkpoints, this phase's own), ``export`` (the
ordinary model folder of its end) and ``policy``, where the loop keeps both for later: ``merged`` and
``checkpoint``, as hard links.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

from attrs import frozen

from wer.errors import OptimizerError
from wer_openrlhf import processes
from wer_openrlhf.launching import environment

_TURNOVER = Path(__file__).with_name("turnover.py")
_ACTOR = "_actor"


@frozen(kw_only=True)
class Policy:
    """Where the policy is.

    Attributes:
        model: A Hugging Face folder, or a name on the hub.
        checkpoint: Folder with DeepSpeed's ``latest`` and the checkpoint that it names; None
            for the untrained writer.
    """

    model: str
    checkpoint: Path | None = None

    def save(self, folder: Path) -> None:
        """Keep the policy in a folder of its own; what is there already stays."""
        if self.checkpoint is None:
            return
        _link_tree(Path(self.model), folder / "merged")
        tag = newest_tag(self.checkpoint)
        assert tag is not None
        _link_tree(self.checkpoint / tag, folder / "checkpoint" / tag)
        shutil.copyfile(self.checkpoint / "latest", folder / "checkpoint" / "latest")

    @classmethod
    def load(cls, folder: Path) -> Policy:
        """Find what `save` kept.

        Raises:
            OptimizerError: It is not there.
        """
        if not (folder / "merged" / "config.json").is_file():
            raise OptimizerError(
                f"there is no policy of the openrlhf backend in {folder}: expected merged/config.json. "
                "Start a new run, or remove the phase's folder to train it again."
            )
        return cls(model=str(folder / "merged"), checkpoint=folder / "checkpoint")


def actor_folder(trainer: Path) -> Path:
    """Where OpenRLHF keeps the policy's checkpoints below its ``--ckpt.path``."""
    return trainer / _ACTOR


def newest_tag(checkpoints: Path) -> str | None:
    """Name the last complete checkpoint; DeepSpeed writes ``latest`` when all of it is on disk."""
    try:
        return (checkpoints / "latest").read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None


def step_of(tag: str | None) -> int:
    """The trainer's step behind a checkpoint's name; 0 for none."""
    found = re.search(r"(\d+)$", tag or "")
    return int(found.group(1)) if found else 0


async def carry(policy: Policy, trainer: Path, *, python: str, rate: float) -> None:
    """Begin a phase with the weights, moments and step count of the last one, and a schedule of its own.

    Args:
        rate: Learning rate at which the phase begins.

    Raises:
        OptimizerError: The last phase left no checkpoint, or it can't be read.
    """
    assert policy.checkpoint is not None
    if newest_tag(policy.checkpoint) is None:
        raise OptimizerError(
            f"the last phase left no checkpoint in {policy.checkpoint}: its optimizer state was removed. "
            "Remove that phase's folder to train it again."
        )
    command = [python, str(_TURNOVER), str(policy.checkpoint), str(actor_folder(trainer)), repr(rate)]
    process = await asyncio.create_subprocess_exec(
        *processes.tied(command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment({}),
    )
    try:
        said, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        last = said.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise OptimizerError(
            f"the checkpoint in {policy.checkpoint} cannot be carried into the next phase:\n"
            + "\n".join(last)
        )


def settle(checkpoints: Path) -> None:
    """Make sense of what a trainer that was killed at any moment has left.

    A checkpoint that was half written goes: OpenRLHF, which keeps the youngest folders, would
    make room for the next one by removing the whole one before it. And DeepSpeed empties
    ``latest`` before it writes a name, at a moment when all of that checkpoint is on disk.
    """
    latest = checkpoints / "latest"
    folders = sorted(
        (folder for folder in checkpoints.glob("*") if folder.is_dir()), key=lambda it: step_of(it.name)
    )
    tag = newest_tag(checkpoints)
    if tag is None and latest.is_file() and folders:
        tag = folders[-1].name
        write_whole(latest, tag)
    if tag is None or not (checkpoints / tag).is_dir():
        latest.unlink(missing_ok=True)
        tag = None
    for folder in folders:
        if tag is None or step_of(folder.name) > step_of(tag):
            drop(folder)


def write_whole(file: Path, text: str) -> None:
    """Write a small file so that it is there entirely or not at all."""
    part = file.with_name(f".{file.name}")
    part.write_text(text, "utf-8")
    part.replace(file)


def keep_newest(checkpoints: Path) -> None:
    """Remove all checkpoints but the last."""
    newest = newest_tag(checkpoints)
    for folder in checkpoints.iterdir() if newest else ():
        if folder.is_dir() and folder.name != newest:
            drop(folder)


def drop(folder: Path) -> None:
    """Remove a folder that nothing needs any more."""
    shutil.rmtree(folder, ignore_errors=True)


def _link_tree(source: Path, target: Path) -> None:
    if source == target:
        return
    part = target.with_name(f".{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part, copy_function=_link)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def _link(file: str, to: str) -> None:
    try:
        os.link(file, to)
    except OSError:  # another disk
        shutil.copy2(file, to)
