"""The table and the report of a run: every figure with its n, trials and interval, from the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wer.agents import called
from wer.configuration import RunConfig
from wer.loop.roles import writer_of
from wer.loop.stateless import REMARKS
from wer.records import Usage
from wer.reports import activation, costs, executors, learning
from wer.reports.depths import depth_lines
from wer.reports.ends import ends_table
from wer.reports.faults import faults_line, faults_table
from wer.reports.results import AVERAGE, Results, results, title_of
from wer.reports.sources import source_lines
from wer.reports.statistics import Estimate
from wer.reports.steps import steps_table
from wer.skills.cleaning import in_cell, in_line, plain
from wer.store import Store


def print_report(console: Console, store: Store, folder: Path, config: RunConfig) -> None:
    """Print the table, the contrasts in words, and where everything is; or that there is nothing yet."""
    found = results(store)
    steps = steps_table(store)
    if steps is not None:
        console.print(steps)
    print_choices(console, store)
    if not found.cells:
        console.print(
            "nothing was measured in this run (yet): see wer eval, or wer run --resume", markup=False
        )
        return
    console.print(table(found, title=f"{split_title(store)} ({folder.name})"))
    for line in findings(found, store, config):
        console.print(in_line(line), markup=False, highlight=False, soft_wrap=True)
    for name, path in (("skills", folder / "skills"), ("report", folder / "report.md")):
        if path.exists():
            console.print(f"{name}: {path}", markup=False, soft_wrap=True)


def print_choices(console: Console, store: Store) -> None:
    """Print by what the depth of refinement was chosen, and what merging kept; nothing where neither was asked."""
    for line in (*depth_lines(store), *source_lines(store)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def table(found: Results, *, title: str) -> Table:
    """One row a condition, one column a domain, and the average with equal weights.

    A cell is Pass@1 with its 95 % interval; n is the number of tasks.
    """
    drawn = Table(title=_text(title), title_justify="left")
    headings, *rows = _grid(found)
    for heading in headings:
        drawn.add_column(_text(heading), justify="left" if heading == "condition" else "right")
    for row in rows:
        drawn.add_row(*map(_text, row))
    return drawn


def _text(name: str) -> Text:
    """Names of domains and skills as they are: no markup, and nothing that commands a terminal."""
    return Text(plain(name))


def write_report(folder: Path, store: Store, config: RunConfig) -> Path:
    """Write ``report.md`` into the run folder."""
    path = folder / "report.md"
    path.write_text("\n".join(_markdown(folder, store, config)) + "\n", "utf-8")
    return path


def _markdown(folder: Path, store: Store, config: RunConfig) -> Iterator[str]:
    found = results(store)
    yield f"# WER run {folder.name}\n"
    acting = ", ".join(map(called, config.executors))
    yield f"Backend `{config.backend}`, executor `{acting}`, writer `{writer_of(config) or 'none'}`.\n"
    yield f"## {split_title(store)}\n"
    heading, *rows = _grid(found)
    yield _row(heading)
    yield "|---" * len(heading) + "|"
    yield from map(_row, rows)
    yield ""
    for line in findings(found, store, config):
        yield f"- {in_line(line)}"
    yield "\n## Training\n"
    yield from _training(store)
    yield from _metrics(store)
    yield from learning.learning_tables(store, config)
    choices = [*depth_lines(store), "", *source_lines(store)]
    if any(choices):
        yield "\n## Depth and merge\n"
        yield from choices
    yield "\n## How episodes ended\n"
    yield from ends_table(store)
    yield "\n## Faults of the infrastructure\n"
    yield "Each was tried again; none of them is in a figure.\n"
    yield from faults_table(store)
    yield "\n## Time\n"
    yield "| stage | seconds |"
    yield "|---|---|"
    for stage, seconds in store.times().items():
        yield _row([stage, f"{seconds:.0f}"])
    yield "\n## Cost\n"
    yield "| role | calls | prompt tokens | of them cached | completion tokens | USD |"
    yield "|---|---|---|---|---|---|"
    for role, usage in sorted(store.spend().items()):
        figures = (usage.calls, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        yield _row([role, *(costs.count(figure, usage) for figure in figures), costs.usd(usage)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(in_cell(cell) for cell in cells)} |"


def split_title(store: Store) -> str:
    """What the table measures, and on which split."""
    return f"Pass@1 on the {store.document('about', 'split') or 'test'} split, %"


def findings(found: Results, store: Store, config: RunConfig) -> Iterator[str]:
    """What the table shows and what it rests on, a sentence each."""
    for contrast in found.contrasts:
        yield contrast.sentence()
    yield from executors.sentences(store)
    yield from activation.sentences(store)
    yield from learning.sentences(store, config)
    yield f"Judged by code alone. Isolation: {store.document('about', 'tier') or 'unknown'}."
    for mark in store.marks():
        yield f"Note: {mark}."
    for note in (*store.documents("leaks").values(), *store.documents(REMARKS).values()):
        yield f"Note: {note}."
    faults = faults_line(store)
    if faults:
        yield f"Faults: {faults}. Each was tried again; none counts as a failed task."
    minutes = sum(store.times().values()) / 60
    usage = sum(store.spend().values(), Usage())
    yield (
        f"{store.count_rollouts()} rollouts, {costs.thousands(usage)}, {minutes:.1f} minutes; "
        f"intervals are 95 %, clustered by task; seed {config.seed}."
    )


def _training(store: Store) -> Iterator[str]:
    stages: dict[str, list[float]] = {}
    for stage, experience in store.experiences():
        stages.setdefault(stage, []).append(experience.reward.task)
    if not stages:
        yield "No candidates were written."
        return
    yield "| stage | candidates | mean R_task |"
    yield "|---|---|---|"
    for stage, rewards in stages.items():
        yield _row([stage, str(len(rewards)), f"{sum(rewards) / len(rewards):.3f}"])


def _metrics(store: Store) -> Iterator[str]:
    """One row an update step, with whatever the optimizer measured in it."""
    steps = store.metrics()
    names = list(dict.fromkeys(name for _, _, measured in steps for name in measured))
    if not names:
        return
    yield "\nUpdate steps; `docs/metrics.md` says what each name means, and `_s` at its end is seconds:\n"
    yield f"| stage | step | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for stage, step, measured in steps:
        cells = (f"{measured[name]:.4g}" if name in measured else "-" for name in names)
        yield _row([stage, str(step), *cells])


def _grid(found: Results) -> list[list[str]]:
    """The table's cells, headings first: Pass@1 and its interval, the trials a task, and n in the headings."""
    heading = ["condition", "trials"]
    for domain in _columns(found):
        tasks = max(cell.estimate.tasks for cell in found.cells if cell.domain == domain)
        heading.append(f"{found.heading(domain)} (n={tasks})")
    rows = []
    for condition in found.conditions:
        estimates = [found.cell(condition, domain) for domain in _columns(found)]
        trials = next(f"{one.trials / one.tasks:g}" for one in estimates if one is not None)
        rows.append([title_of(condition), trials, *map(_figure, estimates)])
    return [heading, *rows]


def _columns(found: Results) -> Sequence[str]:
    return [*found.domains, AVERAGE] if len(found.domains) > 1 else found.domains


def _figure(estimate: Estimate | None) -> str:
    return "-" if estimate is None else estimate.in_percent
