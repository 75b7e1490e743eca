"""``wer merge``: several skills into one, by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter, validators
from rich.console import Console

from wer import plugins
from wer.configuration import LimitsConfig, MergeConfig
from wer.errors import SkillError
from wer.loop.ledger import Budget, Ledger, RoleModel
from wer.loop.merging import Merger
from wer.records import Sampling, Skill
from wer.skills import load_skill, save_skill, slug
from wer.skills.cleaning import plain
from wer.store import Store

_TEMPERATURE = Sampling().temperature


def merge(
    *skills: Path,
    writer: Annotated[str, Parameter(help="The model that merges, provider/name[@url].")],
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Folder of the merged skill; its name is the skill's.")
    ],
    max_words: Annotated[int, Parameter(validator=validators.Number(gte=20))] = 400,
    seed: int = 0,
) -> None:
    """Merge skills of one family of tasks into one. Nothing is run: measure the result with `wer eval`.

    Args:
        skills: Two or more SKILL.md files or their folders.
        max_words: Length that the merger is asked to keep to.
        seed: Of the merger's sampling.
    """
    if len(skills) < 2:
        raise SkillError(f"{len(skills)} skill given; merging needs at least two")
    if out.exists() or slug(out.name) != out.name:
        raise SkillError(
            f"--out {str(out)!r} must be a new folder whose name can be a skill's: lowercase letters, digits and "
            "single hyphens, such as merged-skill"
        )
    sources = [load_skill(path) for path in skills]
    merged = asyncio.run(
        _merge(plugins.load(), writer, sources, max_words=max_words, seed=seed, name=slug(out.name))
    )
    path = save_skill(merged, out.parent)
    Console(soft_wrap=True).print(str(path), markup=False)


async def _merge(
    found: plugins.Plugins, writer: str, sources: Sequence[Skill], *, max_words: int, seed: int, name: str
) -> Skill:
    """Merge as a run does. Nothing is gone on with, so that the store is a scratch one."""
    said = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(line: str) -> None:
        said.print(plain(line), markup=False)

    def give_up(problem: str) -> None:
        raise SkillError(f"the merger wrote no readable skill: {problem}. Try another --writer.")

    settings = MergeConfig(max_words=max_words)
    async with AsyncExitStack() as stack:
        store = Store(Path(stack.enter_context(TemporaryDirectory())) / "wer.sqlite", create=True)
        stack.callback(store.close)
        ledger = Ledger(Budget(), store)
        model = RoleModel(
            found.model(writer), role="merger", ledger=ledger, retries=LimitsConfig().retries, on_retry=say
        )
        stack.push_async_callback(model.close)
        merger = Merger(
            model=model,
            store=store,
            settings=settings,
            seed=seed,
            temperature=_TEMPERATURE,
            unreadable=give_up,
        )
        merged = await merger.merge(sources, name=name)
        used = ledger.total
        usd = "cost unknown" if used.usd is None else f"{used.usd:.4f} USD"
        say(
            f"{used.calls} calls, {used.prompt_tokens} prompt and {used.completion_tokens} completion tokens, {usd}"
        )
        return merged
