"""What a call gives back: a run folder, and everything that can be seen in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from attrs import frozen
from rich.console import RenderableType
from rich.text import Text

from wer import folders, plugins
from wer.api.views import View, as_html, as_text
from wer.errors import ConfigError
from wer.records import Skill, Usage
from wer.reports.benching import bench_lines
from wer.reports.replay import Rejudged, rejudge
from wer.reports.reporting import findings, split_title, table
from wer.reports.results import AVERAGE, Results, bases, results, title_of
from wer.reports.shipping import measured_folder
from wer.reports.showing import REVISED, changes, final, published
from wer.reports.statistics import Estimate
from wer.skills import render_document
from wer.skills.cleaning import plain
from wer.store import Store

T = TypeVar("T")


class Run:
    """A run, from its folder; a finished one of any command, too: ``wer.Run("runs/ID")``.

    Args:
        folder: With a ``run.toml``.
        parts: The plugins, with the objects that the run was begun with; None loads those that are installed.

    Raises:
        ConfigError: It is no run's.
    """

    def __init__(self, folder: str | os.PathLike[str], parts: plugins.Plugins | None = None) -> None:
        self._parts = parts
        self.folder = folders.find(Path(folder).parent, os.fspath(folder))

    def __reduce__(self) -> tuple[type[Run], tuple[Path]]:
        """Another process has the folder, and not the objects that the run was begun with."""
        return Run, (self.folder.resolve(),)

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def results(self) -> Results:
        """Every measured figure, for programs: ``run.results.cell("refined", "average").mean`` is in 0..1."""
        return self._read(results)

    @property
    def table(self) -> View:
        """Pass@1 of every condition with its interval, and what the differences show."""
        config = folders.configuration(self.folder)

        def draw(store: Store) -> View:
            found = results(store)
            if not found.cells:
                return View(Text("nothing was measured in this run"))
            drawn = table(found, title=f"{split_title(store)} ({self.folder.name})")
            lines = [*findings(found, store, config), *bench_lines(store, base=bases(store)[0])]
            return View(drawn, *map(Text, lines))

        return self._read(draw)

    @property
    def diff(self) -> View:
        """What changed in the skills, and for each new line the matched pair on seeing which it was written."""

        def draw(store: Store) -> View:
            parts: list[RenderableType] = []
            for domain, skills in published(store).items():
                if final(skills) in REVISED:
                    parts += [Text(domain, style="bold"), *changes(store, domain, skills, trajectories=False)]
            return View(*(parts or [Text("no skill was revised in this run")]))

        return self._read(draw)

    @property
    def best(self) -> Best:
        """The skills that the run ends with, as they were measured.

        Raises:
            ConfigError: It made none, as a comparison makes none.
        """

        def read(store: Store) -> Best:
            found = published(store)
            made = {domain: (final(skills) or "", skills) for domain, skills in found.items()}
            kept = {domain: skills[name] for domain, (name, skills) in made.items() if name}
            if not kept:
                raise ConfigError(f"run {self.folder.name!r} has no skill of its own (yet).")
            condition = next(name for name, _ in made.values() if name)
            return Best(
                condition=condition,
                skills=kept,
                estimate=results(store).cell(condition, AVERAGE),
                folder=self.folder / "skills" / condition,
            )

        return self._read(read)

    @property
    def gate(self) -> Gated | None:
        """What `wer.evaluate` found with ``against``; None in other runs."""
        file = self.folder / "gate.json"
        if not file.exists():
            return None
        found = json.loads(file.read_text("utf-8"))
        return Gated(answer=found["answer"], text=(self.folder / "gate.md").read_text("utf-8"))

    @property
    def cost(self) -> Mapping[str, Usage]:
        """Calls, tokens and US dollars by role."""
        return self._read(lambda store: store.spend())

    def verify(self, verifier: str = "") -> Verification:
        """Judge every stored rollout again, without a model or a sandbox.

        Args:
            verifier: Another verifier, to see what it would have said.
        """
        found = self._parts or plugins.load()
        return self._read(
            lambda store: Verification(rollouts=tuple(rejudge(store, found, verifier=verifier)))
        )

    def _read(self, look: Callable[[Store], T]) -> T:
        with _opened(self.folder) as store:
            return look(store)

    def __rich__(self) -> RenderableType:
        return View(Text(f"run {self.folder}", style="bold"), self.table, *self._told)

    @property
    def _told(self) -> Iterator[RenderableType]:
        if self.gate is not None:
            yield Text(f"the gate says: {self.gate.answer}")
        yield Text("see .table, .diff, .best, .cost, .verify() and .folder", style="dim")

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)


@frozen(kw_only=True, repr=False, str=False)
class Best:
    """The skills that a run ends with.

    Attributes:
        condition: What they are called in the table's rows: ``refined``, ...
        skills: By ``environment/domain``.
        estimate: Their Pass@1 with its 95 % interval, all domains alike; None where it was not measured.
        folder: Where they lie, an Agent Skills folder each.
    """

    condition: str
    skills: Mapping[str, Skill]
    estimate: Estimate | None
    folder: Path

    @property
    def skill(self) -> Skill:
        """The skill of a run's only domain.

        Raises:
            ConfigError: There are several: see `skills`.
        """
        if len(self.skills) > 1:
            raise ConfigError(f"this run has a skill for each of {', '.join(self.skills)}: see .skills.")
        return next(iter(self.skills.values()))

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Copy them below a folder, an Agent Skills folder each, byte for byte.

        Returns:
            Those folders.

        Raises:
            ConfigError: A skill of that name lies there.
            StoreError: What lies in the run's folder is another skill than was measured.
        """
        sources = {
            skill.name: measured_folder(self.folder.parents[1], self.condition, skill)
            for skill in self.skills.values()
            if not skill.empty
        }
        targets = [Path(folder) / name for name in sources]
        taken = [str(target) for target in targets if target.exists()]
        if taken:
            raise ConfigError(f"{', '.join(taken)} exists already. Name another folder, or remove it first.")
        for source, target in zip(sources.values(), targets, strict=True):
            shutil.copytree(source, target)
        return tuple(targets)

    def __fspath__(self) -> str:
        return str(self.folder / self.skill.name)

    @cached_property
    def _view(self) -> View:
        head = title_of(self.condition)
        if self.estimate is not None:
            points, low, high = (
                100 * each for each in (self.estimate.mean, self.estimate.low, self.estimate.high)
            )
            head += f": Pass@1 {points:.1f} % [{low:.0f}, {high:.0f}]"
        parts = [Text(head, style="bold")]
        for domain, skill in self.skills.items():
            parts += [Text(f"{domain}", style="dim"), Text(plain(render_document(skill)) or "(no skill)")]
        return View(*parts)

    def __rich__(self) -> RenderableType:
        return self._view

    def __str__(self) -> str:
        return str(self._view)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._view)


@frozen(kw_only=True, repr=False)
class Verification:
    """Stored rollouts with their verdicts of now."""

    rollouts: tuple[Rejudged, ...]

    @property
    def differing(self) -> tuple[Rejudged, ...]:
        """Those whose stored verdict is another."""
        return tuple(each for each in self.rollouts if not each.agrees)

    @property
    def agrees(self) -> bool:
        """Whether every verdict came out as it was stored."""
        return not self.differing

    def __repr__(self) -> str:
        return f"{len(self.rollouts)} rollouts judged again, {len(self.differing)} verdicts differ"


@frozen(kw_only=True, repr=False)
class Gated:
    """A gate's answer: ``better``, ``not worse``, ``worse`` or ``undecided``, with its text in Markdown."""

    answer: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


@contextmanager
def _opened(folder: Path) -> Iterator[Store]:
    store = Store(folder / "wer.sqlite", read_only=True)
    try:
        yield store
    finally:
        store.close()
