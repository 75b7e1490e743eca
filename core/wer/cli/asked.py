"""What ``wer eval`` was asked, kept in its run folder, so that the same can go on after an early end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from wer import jobs
from wer.codec import from_json, to_json
from wer.errors import ConfigError, StoreError
from wer.jobs import Job
from wer.records import Skill, Split
from wer.reports.gating import Rule

_FILE = "asked.json"


@frozen(kw_only=True)
class Asked:
    """A question about a skill, with the skills themselves: their files may have changed when it is taken up again.

    Attributes:
        skill: None asks what a writer makes of seed skills.
        against: An older skill that it is compared with; None is no skill.
        aa: Measure the skill again, with other seeds.
        no_regression: Points of Pass@1 that may be lost; None asks for a gain.
        gate: Whether the answer is the exit status.
    """

    skill: Skill | None = None
    against: Skill | None = None
    split: Split = "test"
    aa: bool = False
    no_regression: float | None = None
    gate: bool = False

    def job(self) -> Job[Any]:
        """The work that answers it; that of a comparison with an older skill gives a `wer.reports.gating.Gate`."""
        if self.skill is None:
            return jobs.protocol("eval")
        if self.against is None:
            return jobs.measurement(self.skill, split=self.split, again=self.aa)
        rule = Rule(margin=None if self.no_regression is None else self.no_regression / 100)
        return jobs.gating(self.skill, self.against, rule, split=self.split)

    def keep(self, folder: Path) -> None:
        """Write it down in a run folder."""
        (folder / _FILE).write_text(to_json(self), "utf-8")

    @classmethod
    def of(cls, folder: Path) -> Asked:
        """What a run folder was made for.

        Raises:
            ConfigError: It isn't written there.
            StoreError: It can't be read.
        """
        try:
            return from_json((folder / _FILE).read_text("utf-8"), cls)
        except FileNotFoundError as error:
            raise ConfigError(
                f"{folder.name!r} doesn't say what it was asked. If wer.evaluate made it, go on with the same call and "
                f"resume={str(folder)!r}; or start again."
            ) from error
        except (OSError, ValueError, StoreError) as error:
            raise StoreError(
                f"cannot read {str(folder / _FILE)!r}: {error}. The run folder is damaged."
            ) from error
