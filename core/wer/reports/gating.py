"""A gate for pull requests: is the new skill better than the old one, worse, or can't it be told?

The answer may be given early, when it is clear. Looks at the data are planned, and each
tests at the error rate divided by their number, so that the chance of a wrong answer over
all looks together stays below that rate (Bonferroni's bound, whatever the looks share).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias
from xml.etree import ElementTree

from attrs import asdict, field, frozen, validators

from wer.errors import ConfigError
from wer.reports.statistics import (
    Difference,
    Outcomes,
    equal_weight_difference,
    fewest_tasks,
    smallest_detectable_difference,
)
from wer.skills.cleaning import in_cell, plain

Answer: TypeAlias = Literal["better", "not worse", "worse", "undecided"]
EXIT: Mapping[Answer, int] = {"better": 0, "not worse": 0, "worse": 1, "undecided": 2}
"""The exit status of each answer."""


@frozen(kw_only=True)
class Rule:
    """What a gate demands.

    Attributes:
        looks: How often the data are looked at, the last time with all trials.
        error: The chance of a wrong "better" or "worse" between equal skills, over all looks.
        margin: Loss of Pass@1, in 0..1, that still counts as "not worse"; None demands a gain.
    """

    looks: int = field(default=3, validator=validators.ge(1))
    error: float = field(default=0.05, validator=[validators.gt(0), validators.lt(1)])
    margin: float | None = field(default=None)

    def __attrs_post_init__(self) -> None:
        if self.margin is not None and not 0 <= self.margin < 1:
            raise ConfigError(
                f"no regression of {100 * self.margin:g} points of Pass@1 is no rule; give 0 to below 100, such as 5."
            )

    def answer(self, pairs: Sequence[tuple[Outcomes, Outcomes]], *, last: bool) -> tuple[Answer, Difference]:
        """Look once.

        Args:
            pairs: Outcomes of new and old, a domain each.
            last: Whether no trial is left.
        """
        level = self.error / self.looks
        difference = equal_weight_difference(pairs, level=1 - level)
        if difference.p <= level and difference.mean > 0:
            return "better", difference
        if self.margin is not None and difference.low > -self.margin:
            return "not worse", difference
        beyond = self.margin is None or difference.high < -self.margin
        if difference.p <= level and difference.mean < 0 and (beyond or last):
            return "worse", difference
        return "undecided", difference


@frozen(kw_only=True)
class Gate:
    """What a gate found.

    Attributes:
        difference: Of new and old, its interval at the level of one look.
        looks: Made, of those that were planned.
        trials: A task and skill, until the answer was clear.
        detectable: The smallest true gain that all trials would have found (80 % power).
        broke: Tasks that passed less often, with both shares of trials.
        mended: Tasks that passed more often.
    """

    answer: Answer
    rule: Rule
    difference: Difference
    looks: int
    trials: int
    detectable: float
    broke: Mapping[str, tuple[float, float]]
    mended: Mapping[str, tuple[float, float]]

    def lines(self) -> Iterator[str]:
        """As Markdown."""
        points, low, high = (
            100 * value for value in (self.difference.mean, self.difference.low, self.difference.high)
        )
        level = 100 * (1 - self.rule.error / self.rule.looks)
        yield f"## The new skill is {self.answer}" if self.answer != "undecided" else "## Undecided"
        yield ""
        yield (
            f"{points:+.1f} points of Pass@1 ({level:.1f} % interval {low:+.1f} to {high:+.1f}, p = "
            f"{self.difference.p:.2g}), paired over {self.difference.tasks} tasks x {self.trials} trials; look "
            f"{self.looks} of {self.rule.looks}, error rate {100 * self.rule.error:g} % over all looks."
        )
        few = self.difference.tasks < fewest_tasks(self.rule.error / self.rule.looks)
        if self.answer == "undecided" and few:
            yield (
                f"With fewer than {fewest_tasks(self.rule.error / self.rule.looks)} tasks no difference can be told at "
                "this error rate, however large: add tasks to the split."
            )
        elif self.answer == "undecided":
            yield (
                f"A gain below about {100 * self.detectable:.0f} points can't be told from noise with so many tasks "
                "and trials (80 % power)."
            )
        for title, tasks in (("broke", self.broke), ("mended", self.mended)):
            if tasks:
                yield f"\n| {title} | old | new |\n|---|---|---|"
                yield from (
                    f"| {in_cell(name)} | {old:.0%} | {new:.0%} |" for name, (old, new) in tasks.items()
                )

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write ``gate.md``, ``gate.json`` and ``gate.xml`` (JUnit, a case a task that changed)."""
        (folder / "gate.md").write_text("\n".join(self.lines()) + "\n", "utf-8")
        (folder / "gate.json").write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")
        ElementTree.ElementTree(self._junit()).write(folder / "gate.xml", "utf-8", xml_declaration=True)
        return tuple(folder / name for name in ("gate.md", "gate.json", "gate.xml"))

    def _junit(self) -> ElementTree.Element:
        failed = self.answer in ("worse", "undecided")
        suite = ElementTree.Element(
            "testsuite", name="wer gate", tests=str(1 + len(self.broke) + len(self.mended))
        )
        suite.set("failures", str(failed + (len(self.broke) if self.answer == "worse" else 0)))
        whole = ElementTree.SubElement(
            suite, "testcase", classname="wer", name="the new skill against the old"
        )
        if failed:
            ElementTree.SubElement(whole, "failure", message=self.answer).text = "\n".join(self.lines())
        for name, (old, new) in {**self.broke, **self.mended}.items():
            case = ElementTree.SubElement(suite, "testcase", classname="wer.tasks", name=plain(name))
            if name in self.broke and self.answer == "worse":
                ElementTree.SubElement(case, "failure", message=f"passed {old:.0%} of trials, now {new:.0%}")
        return suite


def decide(
    rule: Rule, new: Sequence[Outcomes], old: Sequence[Outcomes], *, look: int, of_trials: int
) -> Gate:
    """Look at what was measured so far.

    Args:
        new: A domain each.
        old: The same domains.
        look: From 1.
        of_trials: How many a task there will be at the last look.
    """
    pairs = list(zip(new, old, strict=True))
    answer, difference = rule.answer(pairs, last=look == rule.looks)
    shares = {
        task: (_share(before[task]), _share(after[task]))
        for after, before in pairs
        for task in after
        if task in before
    }
    return Gate(
        answer=answer,
        rule=rule,
        difference=difference,
        looks=look,
        trials=max(len(trials) for tasks in new for trials in tasks.values()),
        detectable=smallest_detectable_difference(difference.tasks, of_trials),
        broke={task: share for task, share in shares.items() if share[1] < share[0]},
        mended={task: share for task, share in shares.items() if share[1] > share[0]},
    )


def _share(trials: Sequence[bool]) -> float:
    return sum(trials) / len(trials)
