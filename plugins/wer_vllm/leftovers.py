"""Notes of the servers that run, so that a later start ends what a killed run and its keeper left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from wer.paths import cache_dir
from wer.sandboxing.owners import Owner

_PROC = Path("/proc")


@frozen(kw_only=True)
class Note:
    """A server that was started.

    Attributes:
        path: The file that says so.
        model: As the user named it.
        owner: The process that started it.
        keeper: The leader of the session in which all of its processes are.
    """

    path: Path
    model: str
    owner: Owner
    keeper: Owner

    @classmethod
    def write(cls, model: str, keeper_pid: int) -> Note:
        """Write down that this process has a server."""
        owner, keeper = Owner.me(), Owner.of(keeper_pid)
        path = notes_folder() / f"{keeper.boot[:8]}-{keeper.pid}-{keeper.start}.json"
        words = {"model": model, "owner": owner.write(), "keeper": keeper.write()}
        path.write_text(json.dumps(words), "utf-8")
        return cls(path=path, model=model, owner=owner, keeper=keeper)

    @classmethod
    def read(cls, path: Path) -> Note:
        """Read what `write` wrote.

        Raises:
            OSError, ValueError, TypeError, KeyError: It is gone, or not ours.
        """
        words = json.loads(path.read_text("utf-8"))
        owner, keeper = Owner.read(words["owner"]), Owner.read(words["keeper"])
        return cls(path=path, model=str(words["model"]), owner=owner, keeper=keeper)

    def clear(self) -> int:
        """End what is left of the server once its keeper is dead, and forget it; give the number of processes."""
        ended = 0
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                ended += 1
        self.path.unlink(missing_ok=True)
        return ended

    def _members(self) -> Iterator[int]:
        """Processes of the keeper's session.

        A pid is not given away while a session has it for its name, so that a process
        with the keeper's pid means that the session is long over.
        """
        if not self.keeper.dead or self.keeper.boot != Owner.me().boot:
            return
        if not Owner.of(int(self.keeper.pid)).dead:
            return
        for entry in _PROC.iterdir():
            with contextlib.suppress(OSError, IndexError):
                if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                    state, _, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                    if session == self.keeper.pid and state not in "ZX":
                        yield int(entry.name)


def notes_folder() -> Path:
    """Where notes lie: in the cache, for all runs of this user."""
    folder = cache_dir() / "vllm"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def reap() -> list[str]:
    """End servers whose run and keeper are both dead; return a line for each that was still there.

    A keeper that lives is ending its server by itself.
    """
    lines = []
    for path in notes_folder().glob("*.json"):
        try:
            note = Note.read(path)
        except (OSError, ValueError, TypeError, KeyError):
            continue  # half written by a living run
        if note.owner.dead and note.keeper.dead and (ended := note.clear()):
            lines.append(f"{ended} processes of vllm/{note.model}, left by a run that was killed")
    return lines
