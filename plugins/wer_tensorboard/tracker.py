"""Writes a run's figures as TensorBoard event files, each figure on disk when `log` returns.

The files come from TensorBoard's own protocol buffers and record writer: its asynchronous
writer would hold figures back, and lose them to ``kill -9``.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from wer.configuration import structure
from wer.contracts import TrackerSetup
from wer_tensorboard.options import TensorBoardOptions


@define
class TensorBoard:
    """A folder of event files a stage, since each stage counts its own steps.

    A tag is ``STAGE/NAME``, such as ``train/reward``.

    Args:
        setup: ``setup.options`` is read as `TensorBoardOptions`.
    """

    setup: TrackerSetup
    _folder: Path = field(init=False)
    _files: dict[str, _EventFile] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        options = structure(TensorBoardOptions, self.setup.options, where="tracking.tensorboard")
        named = Path(options.folder).expanduser() / self.setup.name
        self._folder = named if options.folder else self.setup.folder / "tensorboard"

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Write the figures of one step.

        Raises:
            OSError: The disk is full, or the folder can't be written.
        """
        if stage not in self._files:
            self._files[stage] = _EventFile.begin(self._folder / stage, step)
        values = [Summary.Value(tag=f"{stage}/{name}", simple_value=value) for name, value in metrics.items()]
        self._files[stage].write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """Close the files; everything is already in them."""
        for file in self._files.values():
            file.close()
        self._files.clear()


class _EventFile:
    """One event file, of one process."""

    def __init__(self, path: Path) -> None:
        self._records = RecordWriter(path.open("wb"))

    @classmethod
    def begin(cls, folder: Path, step: int) -> _EventFile:
        """Open a new file; what files of a killed process say of this step and later ones is void."""
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        file = cls(folder / f"events.out.tfevents.{now:017.6f}.{socket.gethostname()}.{os.getpid()}")
        file.write(Event(wall_time=now, file_version="brain.Event:2"))
        file.write(Event(wall_time=now, step=step, session_log=SessionLog(status=SessionLog.START)))
        return file

    def write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())
        self._records.flush()

    def close(self) -> None:
        self._records.close()
