"""The writer's weights with what they learn by: what is trained, whoever decides what an answer earned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from wer.configuration import structure
from wer.contracts import OptimizerSetup
from wer.errors import OptimizerError
from wer_grpo.asking import try_folder
from wer_grpo.authoring import Author
from wer_grpo.checkpoints import load_learner, newest_checkpoint, save_learner
from wer_grpo.learner import Group, Learner
from wer_grpo.merging import save_merged
from wer_grpo.options import GrpoOptions
from wer_grpo.worker import Worker
from wer_grpo.writer import Writer, open_writer


class Trained:
    """A writer in memory and its learner, loaded at first use; torch works in a thread of its own.

    Args:
        setup: ``setup.options`` is read as `GrpoOptions`.

    Raises:
        ConfigError: An option is wrong, or the writer is a folder whose tokenizer or chat
            template is of no use.
    """

    def __init__(self, setup: OptimizerSetup) -> None:
        self._options = structure(GrpoOptions, setup.options, where="optimizer.grpo")
        try_folder(setup.writer)
        self._setup = setup
        self._worker = Worker()

    @cached_property
    def _writer(self) -> Writer:
        self._setup.progress("loading the writer")
        return open_writer(self._setup, self._options)

    @cached_property
    def _author(self) -> Author:
        return Author(setup=self._setup, writer=self._writer, check=self._worker.check)

    @cached_property
    def _learner(self) -> Learner:
        return Learner(self._writer.policy, self._writer.trainable(), self._options)

    def save(self, folder: Path) -> None:
        """Write the trained weights with Adam's moments, and ``merged/``: an ordinary bfloat16 model folder.

        ``merged/`` serves as the writer of another run, or of any program that reads
        Hugging Face folders.
        """
        save_learner(self._learner, folder)
        save_merged(self._writer, folder / "merged")

    def load(self, folder: Path) -> None:
        """Take over what `save` wrote.

        Raises:
            OptimizerError: It is not there, or belongs to other weights.
        """
        load_learner(self._learner, folder)

    async def close(self) -> None:
        """Let the thread end."""
        self._worker.close()

    def _learn(self, lessons: Sequence[Group], share: tuple[float, float], folder: Path) -> dict[str, float]:
        """Make the update of one batch, in the thread.

        Args:
            folder: The phase's, for the message when the update fails.
        """
        teaching = sum(lesson.teaches for lesson in lessons)
        tick = self._author.ticker(f"learning from {teaching} of {len(lessons)} groups")
        try:
            return self._learner.update(lessons, share, lambda: tick(0))
        except OptimizerError as error:
            last = newest_checkpoint(folder)
            raise OptimizerError(
                f"{error}, so the step was not made and the weights are untouched. "
                f"Last checkpoint: {last or 'none in this phase'}. Lower optimizer.grpo.learning_rate or "
                "max_grad_norm, or train in float32, and resume."
            ) from error
