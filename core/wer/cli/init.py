"""``wer init``: own tasks and an own check, without a package."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from wer import scaffolds


def init(folder: Path = Path()) -> None:
    """Write a start into a folder that works as it is: wer.toml, three tasks, and check.py with tools and a check.

    Then `wer plugin check check.py:pantry` there says whether the check is right, and `wer run` makes a better skill.

    Args:
        folder: Made when it is not there.
    """
    out = Console(highlight=False, soft_wrap=True)
    for path in scaffolds.start(folder):
        out.print(f"{path}", markup=False)
    here = "" if folder.resolve() == Path().resolve() else f"cd {folder}\n"
    out.print(f"\n{here}wer plugin check check.py:pantry\nwer run --dry-run", markup=False)
